// SPDX-License-Identifier: Apache-2.0
/// The bench's page: one file with charts as inline SVG.
@NullMarked
package dev.gantry.benchmarks.page;

import org.jspecify.annotations.NullMarked;
