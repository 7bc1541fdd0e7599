// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.CudaDriver;
import org.jspecify.annotations.Nullable;

/// The slab that reads fill, and how they are ordered with other uses of it by its device.
public final class Target {
  private final Slab slab;
  private final CudaDriver.@Nullable Stream stream;
  private final CudaDriver.@Nullable Event free;

  private Target(Slab slab, CudaDriver.@Nullable Stream stream, CudaDriver.@Nullable Event free) {
    this.slab = slab;
    this.stream = stream;
    this.free = free;
  }

  /// Memory that is free. The bytes have arrived when the reader is drained.
  public static Target of(Slab slab) {
    return new Target(slab, null, null);
  }

  /// Memory that may still be in use.
  ///
  /// @param stream for the copies, which runs them when the memory is free. The bytes have arrived
  ///     when it has done so
  /// @param free fires when the memory is free, for transports that use no stream
  public static Target ordered(Slab slab, CudaDriver.Stream stream, CudaDriver.Event free) {
    return new Target(slab, stream, free);
  }

  public Slab slab() {
    return slab;
  }

  public CudaDriver.@Nullable Stream stream() {
    return stream;
  }

  public CudaDriver.@Nullable Event free() {
    return free;
  }
}
