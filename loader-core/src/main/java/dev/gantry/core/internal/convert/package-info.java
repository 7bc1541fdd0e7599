// SPDX-License-Identifier: Apache-2.0
/// Elements of 8 bits become wider ones, times their scales, on the host and on CUDA devices, to the
/// same bits.
@NullMarked
package dev.gantry.core.internal.convert;

import org.jspecify.annotations.NullMarked;
