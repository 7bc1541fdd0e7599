// SPDX-License-Identifier: Apache-2.0
/// Finds the quantised tensors of weights, and how their values are computed from what is stored.
@NullMarked
package dev.gantry.formats.internal.quantised;

import org.jspecify.annotations.NullMarked;
