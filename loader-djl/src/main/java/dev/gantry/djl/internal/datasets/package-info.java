// SPDX-License-Identifier: Apache-2.0
/// Turns the slots of a ring into DJL's batches: an iteration makes the batches, and each batch
/// has an array over each field of its slot.
@NullMarked
package dev.gantry.djl.internal.datasets;

import org.jspecify.annotations.NullMarked;
