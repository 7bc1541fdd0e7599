package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.CudaDriver;
import org.jspecify.annotations.Nullable;

/// The slab that reads fill, and how that is ordered with what else its device does with it.
public final class Target {
  private final Slab slab;
  private final CudaDriver.@Nullable Stream stream;
  private final CudaDriver.@Nullable Event free;

  private Target(Slab slab, CudaDriver.@Nullable Stream stream, CudaDriver.@Nullable Event free) {
    this.slab = slab;
    this.stream = stream;
    this.free = free;
  }

  /// Memory that is free; what is read arrives when the reader says so.
  public static Target of(Slab slab) {
    return new Target(slab, null, null);
  }

  /// Memory that others may still be using.
  ///
  /// @param stream that copies are queued on: it gets to them when the memory is free, and what was
  ///     read has arrived when it has passed them
  /// @param free comes to pass when the memory is free, for those who are ordered with no stream
  public static Target ordered(Slab slab, CudaDriver.Stream stream, CudaDriver.Event free) {
    return new Target(slab, stream, free);
  }

  Slab slab() {
    return slab;
  }

  CudaDriver.@Nullable Stream stream() {
    return stream;
  }

  CudaDriver.@Nullable Event free() {
    return free;
  }
}
