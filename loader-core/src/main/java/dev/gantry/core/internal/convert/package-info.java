// SPDX-License-Identifier: Apache-2.0
/// Converts quantised elements to floating point by formulas, and normalises samples. The host and
/// CUDA devices compute the same bits.
@NullMarked
package dev.gantry.core.internal.convert;

import org.jspecify.annotations.NullMarked;
