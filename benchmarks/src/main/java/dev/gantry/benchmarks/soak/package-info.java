// SPDX-License-Identifier: Apache-2.0
/// Runs all operations at once for a given time, with faults, and checks that results are right
/// and that nothing leaks.
@NullMarked
package dev.gantry.benchmarks.soak;

import org.jspecify.annotations.NullMarked;
