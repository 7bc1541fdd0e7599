// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Location;

/// A file that a server is to keep in memory.
///
/// @param size in bytes
/// @param tensorsFrom the first byte of a tensor
/// @param tensorsTo the end of the last; equal to `tensorsFrom` for a file without tensors
public record ResidentSource(Location file, long size, long tensorsFrom, long tensorsTo) {}
