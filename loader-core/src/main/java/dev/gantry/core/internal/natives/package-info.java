// SPDX-License-Identifier: Apache-2.0
/// The native libraries that move bytes. Each library has one hand-written class, with typed
/// public methods and private method handles. A missing library or symbol is an
/// [Availability.Absent] with its reason, and is looked for once. A call that fails throws an
/// exception with the code of the layer that refused.
@NullMarked
package dev.gantry.core.internal.natives;

import org.jspecify.annotations.NullMarked;
