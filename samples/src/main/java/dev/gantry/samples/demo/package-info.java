// SPDX-License-Identifier: Apache-2.0
/// The tour that `gantry demo` runs: generated weights, trainings that are killed, comparisons.
@NullMarked
package dev.gantry.samples.demo;

import org.jspecify.annotations.NullMarked;
