package dev.gantry.core.io;

import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.memory.Slab;
import org.jspecify.annotations.Nullable;

/// The slab that reads fill, and how that is ordered with what else its device does with it. Where
/// there is any such order: for one reader, and a new one each time that the slab is filled.
public final class Target {
  private final Slab slab;
  private final CudaDriver.@Nullable Event free;
  private final CudaDriver.@Nullable Event arrived;

  private Target(Slab slab, CudaDriver.@Nullable Event free, CudaDriver.@Nullable Event arrived) {
    this.slab = slab;
    this.free = free;
    this.arrived = arrived;
  }

  /// Memory that is free; what is read arrives when the reader says so.
  public static Target of(Slab slab) {
    return new Target(slab, null, null);
  }

  /// Memory that others may still be using.
  ///
  /// @param free what comes to pass before the slab is written
  /// @param arrived is recorded to come to pass when what the reader has read has arrived
  public static Target ordered(Slab slab, CudaDriver.Event free, CudaDriver.Event arrived) {
    return new Target(slab, free, arrived);
  }

  Slab slab() {
    return slab;
  }

  CudaDriver.@Nullable Event free() {
    return free;
  }

  CudaDriver.@Nullable Event arrived() {
    return arrived;
  }
}
