// SPDX-License-Identifier: Apache-2.0
/// Turns extents into aligned reads. Pure: no I/O, no clock, no native call.
@NullMarked
package dev.gantry.core.internal.plan;

import org.jspecify.annotations.NullMarked;
