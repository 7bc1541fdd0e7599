// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Memory;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.spi.Copy2D;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The memory that reads fill.
public sealed interface Target {
  /// The stream on which readers queue their copies into memory that may still be in use. The
  /// stream runs the copies when the memory is free, and the bytes have arrived when the stream
  /// has run them. Null for memory that nothing uses: its bytes have arrived when the reader is
  /// drained.
  default CudaDriver.@Nullable Stream stream() {
    return null;
  }

  /// A slab.
  ///
  /// @param stream see [#stream]
  /// @param free an event that completes when the memory is free, for transports that use no
  ///     stream; null for memory that nothing uses
  record InSlab(Slab slab, CudaDriver.@Nullable Stream stream, CudaDriver.@Nullable Event free)
      implements Target {}

  /// The same offset in one slab on each of several devices. Nothing uses the slabs now.
  ///
  /// @param slabs one for each device, in the devices' order
  record OnEach(List<Slab> slabs) implements Target {
    public OnEach {
      slabs = List.copyOf(slabs);
    }
  }

  /// Memory that nothing uses now, on one device or several.
  ///
  /// @param pieces the parts of a read that go to memory; the other bytes of the read are dropped
  record Scattered(List<Piece> pieces) implements Target {
    public Scattered {
      pieces = List.copyOf(pieces);
    }
  }

  /// Rows of a read that go to one piece of memory.
  ///
  /// @param rows copies from an offset in the read to an offset in `memory`
  record Piece(Copy2D rows, Memory memory) {}

  /// The target of a slab that nothing uses now.
  static Target of(Slab slab) {
    return new InSlab(slab, null, null);
  }

  /// The target of a slab that may still be in use; see [InSlab].
  static Target ordered(Slab slab, CudaDriver.Stream stream, CudaDriver.Event free) {
    return new InSlab(slab, stream, free);
  }
}
