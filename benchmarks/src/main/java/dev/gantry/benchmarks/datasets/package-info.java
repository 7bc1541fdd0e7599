// SPDX-License-Identifier: Apache-2.0
/// Side-by-side runs on datasets: rings, indexes, shards, ceilings.
@NullMarked
package dev.gantry.benchmarks.datasets;

import org.jspecify.annotations.NullMarked;
