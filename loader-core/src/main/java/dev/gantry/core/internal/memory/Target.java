// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Memory;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.spi.Copy2D;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The memory that reads fill.
public sealed interface Target {
  /// How the reads are ordered with other uses of the memory by its device; null for memory that is
  /// free: the bytes have arrived when the reader is drained.
  default @Nullable Ordered order() {
    return null;
  }

  /// A slab.
  record InSlab(Slab slab, @Nullable Ordered order) implements Target {}

  /// The same place in a slab of each of several devices, which are free.
  ///
  /// @param slabs one a device, in the devices' order
  record OnEach(List<Slab> slabs) implements Target {
    public OnEach {
      slabs = List.copyOf(slabs);
    }
  }

  /// Memory that nothing uses now, also of several devices.
  ///
  /// @param pieces which bytes of a read are wanted; the others go nowhere
  record Scattered(List<Piece> pieces) implements Target {
    public Scattered {
      pieces = List.copyOf(pieces);
    }
  }

  /// Rows of a read that go to one piece of memory.
  ///
  /// @param rows from an offset in the read to an offset in `memory`
  /// @param region the memory to register for it, if any is to be: of one allocation, with `memory`
  ///     in it
  record Piece(Copy2D rows, Memory memory, Memory region) {}

  /// Memory of a slab that may still be in use.
  ///
  /// @param stream for the copies, which runs them when the memory is free. The bytes have arrived
  ///     when it has done so
  /// @param free fires when the memory is free, for transports that use no stream
  record Ordered(CudaDriver.Stream stream, CudaDriver.Event free, StreamOwner owner) {}

  /// Destroys a stream, and hands over what it has filled.
  @FunctionalInterface
  interface StreamOwner {
    /// For those who queue work on the stream whose result is known when the stream has passed it.
    ///
    /// @param check called whenever the host has waited for the stream, before it hands over the
    ///     bytes; throws if they are not right
    /// @param close called once, before the stream is destroyed
    void attach(Runnable check, Runnable close);
  }

  /// A slab that is free.
  static Target of(Slab slab) {
    return new InSlab(slab, null);
  }

  /// A slab that may still be in use.
  static Target ordered(Slab slab, Ordered order) {
    return new InSlab(slab, order);
  }

  default CudaDriver.@Nullable Stream stream() {
    Ordered order = order();
    return order == null ? null : order.stream();
  }

  default CudaDriver.@Nullable Event free() {
    Ordered order = order();
    return order == null ? null : order.free();
  }
}
