// SPDX-License-Identifier: Apache-2.0
/// The native libraries that move bytes, one hand-written class for each, with typed methods outside and method handles
/// inside. A missing library or symbol is an [Availability.Absent] with its reason, found once; a call that fails
/// throws an exception with the code of the layer that refused.
@NullMarked
package dev.gantry.core.internal.natives;

import org.jspecify.annotations.NullMarked;
