// SPDX-License-Identifier: Apache-2.0
/// The page of a bench: one HTML file, whose script draws the charts.
@NullMarked
package dev.gantry.benchmarks.page;

import org.jspecify.annotations.NullMarked;
