// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.CudaDriver;
import org.jspecify.annotations.Nullable;

/// The slab that reads fill, and how they are ordered with other uses of it by its device.
///
/// @param order null for memory that is free: the bytes have arrived when the reader is drained
public record Target(Slab slab, @Nullable Ordered order) {
  /// Of memory that may still be in use.
  ///
  /// @param stream for the copies, which runs them when the memory is free. The bytes have arrived
  ///     when it has done so
  /// @param free fires when the memory is free, for transports that use no stream
  public record Ordered(CudaDriver.Stream stream, CudaDriver.Event free, StreamOwner owner) {}

  /// Destroys a stream, and hands over what it has filled.
  @FunctionalInterface
  public interface StreamOwner {
    /// For those who queue work on the stream whose result is known when the stream has passed it.
    ///
    /// @param check called whenever the host has waited for the stream, before it hands over the
    ///     bytes; throws if they are not right
    /// @param close called once, before the stream is destroyed
    void attach(Runnable check, Runnable close);
  }

  /// Memory that is free.
  public static Target of(Slab slab) {
    return new Target(slab, null);
  }

  /// Memory that may still be in use.
  public static Target ordered(Slab slab, Ordered order) {
    return new Target(slab, order);
  }

  public CudaDriver.@Nullable Stream stream() {
    return order == null ? null : order.stream();
  }

  public CudaDriver.@Nullable Event free() {
    return order == null ? null : order.free();
  }
}
