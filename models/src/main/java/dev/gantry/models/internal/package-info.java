// SPDX-License-Identifier: Apache-2.0
/// The factories that the service loader finds, for DJL and for the engine `Gantry`.
@NullMarked
package dev.gantry.models.internal;

import org.jspecify.annotations.NullMarked;
