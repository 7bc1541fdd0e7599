// SPDX-License-Identifier: Apache-2.0
/// Finds the quantised tensors of weights, and describes how to compute their values from stored
/// tensors.
@NullMarked
package dev.gantry.formats.internal.quantised;

import org.jspecify.annotations.NullMarked;
