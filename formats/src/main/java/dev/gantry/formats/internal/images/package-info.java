// SPDX-License-Identifier: Apache-2.0
/// The decoding of pictures: reading headers, decoding with libturbojpeg or the JDK's readers,
/// cropping, and resampling.
@NullMarked
package dev.gantry.formats.internal.images;

import org.jspecify.annotations.NullMarked;
