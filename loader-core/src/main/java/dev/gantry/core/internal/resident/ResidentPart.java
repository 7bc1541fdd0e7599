// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

/// A file that is kept in memory. Its bytes from `deviceFrom` to `deviceTo` lie on the device, if the
/// weights are on one; all others in a memory file.
///
/// @param name without folders
/// @param size in bytes
/// @param hostPhase offset of the file's first byte in the memory file, chosen so that tensors are aligned
/// @param deviceFrom the first byte that lies on the device
/// @param deviceTo where the bytes on the device end; equal to `deviceFrom` if there are none
/// @param deviceCapacity the size of the device's allocation; 0 if there is none
public record ResidentPart(
    String name, long size, long hostPhase, long deviceFrom, long deviceTo, long deviceCapacity) {
  /// The size of the memory file.
  public long hostBytes() {
    return hostPhase + size;
  }

  /// Whether bytes lie on the device.
  public boolean isOnDevice() {
    return deviceCapacity > 0;
  }

  /// The number of descriptors: one of the memory file, and one of the device's memory if there is some.
  int descriptors() {
    return isOnDevice() ? 2 : 1;
  }
}
