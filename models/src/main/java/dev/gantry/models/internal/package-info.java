// SPDX-License-Identifier: Apache-2.0
/// What the engine `Gantry` for DJL finds by the service loader.
@NullMarked
package dev.gantry.models.internal;

import org.jspecify.annotations.NullMarked;
