// SPDX-License-Identifier: Apache-2.0
/// Decodes pictures: headers, libturbojpeg and the JDK's readers, crops, and resampling.
@NullMarked
package dev.gantry.formats.internal.images;

import org.jspecify.annotations.NullMarked;
