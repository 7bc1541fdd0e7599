// SPDX-License-Identifier: Apache-2.0
/// Batches of TFRecord files that are read from beginning to end: interleaved files, a shuffle
/// buffer, and cursors from which reading continues.
@NullMarked
package dev.gantry.formats.internal.streams;

import org.jspecify.annotations.NullMarked;
