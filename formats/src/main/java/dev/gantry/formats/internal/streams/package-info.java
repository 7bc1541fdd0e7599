// SPDX-License-Identifier: Apache-2.0
/// TFRecord files read from beginning to end as batches: several files in turn, a shuffle buffer, and
/// cursors to go on from.
@NullMarked
package dev.gantry.formats.internal.streams;

import org.jspecify.annotations.NullMarked;
