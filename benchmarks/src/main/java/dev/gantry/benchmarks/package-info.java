// SPDX-License-Identifier: Apache-2.0
/// Measurements, each beside the ceiling of the same run.
@NullMarked
package dev.gantry.benchmarks;

import org.jspecify.annotations.NullMarked;
