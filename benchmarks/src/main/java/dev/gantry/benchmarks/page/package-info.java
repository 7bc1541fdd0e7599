// SPDX-License-Identifier: Apache-2.0
/// The bench's page: one file, in which a script draws the charts.
@NullMarked
package dev.gantry.benchmarks.page;

import org.jspecify.annotations.NullMarked;
