// SPDX-License-Identifier: Apache-2.0
/// The order of the samples of an epoch, and the rank that gets each: pure functions of sizes,
/// options, seed and epoch.
@NullMarked
package dev.gantry.formats.internal.order;

import org.jspecify.annotations.NullMarked;
