// SPDX-License-Identifier: Apache-2.0
/// Measurements of Gantry, each beside a ceiling that the same process measured.
@NullMarked
package dev.gantry.benchmarks;

import org.jspecify.annotations.NullMarked;
