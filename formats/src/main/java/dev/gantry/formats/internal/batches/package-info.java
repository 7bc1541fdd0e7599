// SPDX-License-Identifier: Apache-2.0
/// Batches of samples that are reached by number: what each batch reads, what the CPU writes and where
/// its fields lie in a slot.
@NullMarked
package dev.gantry.formats.internal.batches;

import org.jspecify.annotations.NullMarked;
