// SPDX-License-Identifier: Apache-2.0
/// Loads of tensors as arrays and into parameters: rules for names, the plan of a load, casts and
/// conversions, and where values go.
@NullMarked
package dev.gantry.djl.internal.weights;

import org.jspecify.annotations.NullMarked;
