// SPDX-License-Identifier: Apache-2.0
/// Turns the slots of a ring into DJL's batches: an iteration, its batches and the arrays over each
/// field.
@NullMarked
package dev.gantry.djl.internal.datasets;

import org.jspecify.annotations.NullMarked;
