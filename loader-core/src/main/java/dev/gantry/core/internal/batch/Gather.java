// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.Extent;

/// Bytes of a file and where in the slot they belong, at any offset of both.
///
/// @param from not empty
/// @param slotOffset bytes from the slot's start
public record Gather(Extent from, long slotOffset) {}
