// SPDX-License-Identifier: Apache-2.0
/// Pictures as fields of samples.
@NullMarked
package dev.gantry.formats.images;

import org.jspecify.annotations.NullMarked;
