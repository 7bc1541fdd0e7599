// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// Memory that the caller owns, such as a tensor's memory or a buffer. Loads fill the memory, and
/// writes read it. Gantry never frees the memory. It must stay allocated until the call that takes
/// it returns.
public sealed interface Memory extends Source {
  /// The device of the memory.
  Device device();

  @Override
  Memory slice(long offset, long bytes);

  /// Host memory.
  ///
  /// @param segment a segment that every thread can access: from a shared, automatic or global
  ///     arena, on the heap, or made from an address
  record OnHost(MemorySegment segment) implements Memory {
    private static final Thread SOME_OTHER = Thread.ofPlatform().unstarted(() -> {});

    public OnHost {
      if (!MisuseException.requireGiven("segment", segment).isAccessibleBy(SOME_OTHER)) {
        throw new MisuseException(
            "memory must not be confined to one thread (was " + segment + ")");
      }
    }

    @Override
    public long length() {
      return segment.byteSize();
    }

    @Override
    public Device device() {
      return Device.HOST;
    }

    @Override
    public OnHost slice(long offset, long bytes) {
      return new OnHost(segment.asSlice(offset, bytes));
    }
  }

  /// Memory of a CUDA device. A call that takes this memory first waits for the work that was
  /// queued on the device.
  ///
  /// @param address the first byte's address on the device
  record OnDevice(Device.Cuda device, long address, long length) implements Memory {
    public OnDevice {
      MisuseException.requireGiven("device", device);
      if (address < 0 || length < 0) {
        throw new MisuseException(
            "device memory out of range: address " + address + ", length " + length);
      }
    }

    @Override
    public OnDevice slice(long offset, long bytes) {
      Objects.checkFromIndexSize(offset, bytes, length);
      return new OnDevice(device, address + offset, bytes);
    }
  }
}
