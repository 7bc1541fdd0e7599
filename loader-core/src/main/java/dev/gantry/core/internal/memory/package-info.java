// SPDX-License-Identifier: Apache-2.0
/// Slabs: allocations with one owner, shared by counting, freed once, and accounted for.
@NullMarked
package dev.gantry.core.internal.memory;

import org.jspecify.annotations.NullMarked;
