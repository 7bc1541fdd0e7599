// SPDX-License-Identifier: Apache-2.0
/// Comparisons of datasets: rings, indexes and shards beside peers and ceilings.
@NullMarked
package dev.gantry.benchmarks.datasets;

import org.jspecify.annotations.NullMarked;
