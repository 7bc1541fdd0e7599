// SPDX-License-Identifier: Apache-2.0
/// The results of a bench, as data and as JSON.
@NullMarked
package dev.gantry.benchmarks.result;

import org.jspecify.annotations.NullMarked;
