// SPDX-License-Identifier: Apache-2.0
/// In which order the samples of an epoch come and which rank gets them: pure functions of sizes,
/// options, seed and epoch.
@NullMarked
package dev.gantry.formats.internal.order;

import org.jspecify.annotations.NullMarked;
