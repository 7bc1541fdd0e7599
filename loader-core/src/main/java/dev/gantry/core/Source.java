// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// Bytes to be written, in memory or in another file. They must not change until the write has ended.
public sealed interface Source {
  /// In bytes.
  long length();

  /// A part of this.
  default Source slice(long offset, long bytes) {
    return switch (this) {
      case HostMemory(MemorySegment segment) -> new HostMemory(segment.asSlice(offset, bytes));
      case DeviceMemory(Device.Cuda device, long address, long length) -> {
        Objects.checkFromIndexSize(offset, bytes, length);
        yield new DeviceMemory(device, address + offset, bytes);
      }
      case FilePart(Extent extent) -> {
        Objects.checkFromIndexSize(offset, bytes, extent.length());
        yield new FilePart(new Extent(extent.file(), extent.offset() + offset, bytes));
      }
    };
  }

  /// Host memory.
  ///
  /// @param segment accessible to every thread: of a shared, automatic or global arena, of the heap,
  ///     or a bare address
  record HostMemory(MemorySegment segment) implements Source {
    private static final Thread SOME_OTHER = Thread.ofPlatform().unstarted(() -> {});

    public HostMemory {
      if (!segment.isAccessibleBy(SOME_OTHER)) {
        throw new MisuseException("memory that is confined to one thread: " + segment);
      }
    }

    @Override
    public long length() {
      return segment.byteSize();
    }
  }

  /// Memory of a CUDA device. The write waits for work that was queued on the device before.
  ///
  /// @param address of the first byte, on the device
  record DeviceMemory(Device.Cuda device, long address, long length) implements Source {
    public DeviceMemory {
      if (address < 0 || length < 0) {
        throw new MisuseException(
            "device memory out of range: address " + address + ", length " + length);
      }
    }
  }

  /// A part of a file.
  record FilePart(Extent extent) implements Source {
    @Override
    public long length() {
      return extent.length();
    }
  }
}
