// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

/// A file that is kept in memory. If the weights are on a device, the bytes from `deviceFrom` to
/// `deviceTo` lie on that device. All other bytes lie in a memory file.
///
/// @param name the file's name without its folder
/// @param size the file's size in bytes
/// @param hostPhase offset of the file's first byte in the memory file, chosen so that tensors are aligned
/// @param deviceFrom the first byte that lies on the device
/// @param deviceTo where the bytes on the device end; equal to `deviceFrom` if there are none
/// @param deviceCapacity the size of the device's allocation; 0 if there is none
public record ResidentPart(
    String name, long size, long hostPhase, long deviceFrom, long deviceTo, long deviceCapacity) {
  /// The size of the memory file in bytes.
  public long hostBytes() {
    return hostPhase + size;
  }

  /// Whether bytes lie on the device.
  public boolean isOnDevice() {
    return deviceCapacity > 0;
  }

  /// The number of descriptors: one of the memory file, and one more of the device's memory if
  /// bytes lie there.
  int descriptors() {
    return isOnDevice() ? 2 : 1;
  }
}
