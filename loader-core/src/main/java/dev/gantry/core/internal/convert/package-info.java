// SPDX-License-Identifier: Apache-2.0
/// Converts elements of 8 bits to wider ones, times their scales, and normalises samples; the host and CUDA
/// devices compute the same bits.
@NullMarked
package dev.gantry.core.internal.convert;

import org.jspecify.annotations.NullMarked;
