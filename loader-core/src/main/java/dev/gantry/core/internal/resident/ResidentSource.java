// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Location;

/// A file that a server is to keep in memory.
///
/// @param size the file's size in bytes
/// @param tensorsFrom the offset of the first tensor's first byte
/// @param tensorsTo where the last tensor ends; equal to `tensorsFrom` if the file has no tensors
public record ResidentSource(Location file, long size, long tensorsFrom, long tensorsTo) {}
