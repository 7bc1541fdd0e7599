// SPDX-License-Identifier: Apache-2.0
/// The factories that the engine `Gantry` for DJL, and DJL itself, find by the service loader.
@NullMarked
package dev.gantry.models.internal;

import org.jspecify.annotations.NullMarked;
