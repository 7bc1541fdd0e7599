// SPDX-License-Identifier: Apache-2.0
/// Slabs: allocations with counted shares, which are freed once and counted in [LiveResources].
@NullMarked
package dev.gantry.core.internal.memory;

import org.jspecify.annotations.NullMarked;
