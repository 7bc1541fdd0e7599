// SPDX-License-Identifier: Apache-2.0
/// Slabs: allocations that are shared by counting, freed once, and accounted for.
@NullMarked
package dev.gantry.core.internal.memory;

import org.jspecify.annotations.NullMarked;
