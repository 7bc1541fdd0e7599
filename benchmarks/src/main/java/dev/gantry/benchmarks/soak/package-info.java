// SPDX-License-Identifier: Apache-2.0
/// Everything at once for a given time, with faults: what stays right, and what stays behind.
@NullMarked
package dev.gantry.benchmarks.soak;

import org.jspecify.annotations.NullMarked;
