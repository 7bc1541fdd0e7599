// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOperation;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.ring.Rings;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.List;

/// Tells how much memory a session's operations will take, before anything is allocated. Each method has the
/// parameters of the operation. Thread-safe.
public final class MemoryForecast {
  private final TransferEngine engine;
  private final Rings rings;

  MemoryForecast(TransferEngine engine, Rings rings) {
    this.engine = engine;
    this.rings = rings;
  }

  /// The memory of [GantrySession#load].
  ///
  /// @throws dev.gantry.core.TransferException if a file cannot be opened, which may be needed to know how
  ///     it is read
  public LoadMemory load(List<ExtentRequest> wanted, Device device, TransferOptions options) {
    return ResidentLoad.serves(wanted, options)
        ? ResidentLoad.memory(wanted, device, others -> reads(others, device, options))
        : reads(wanted, device, options);
  }

  private LoadMemory reads(List<ExtentRequest> wanted, Device device, TransferOptions options) {
    ReadPlan plan = Planner.plan(wanted, options.limits());
    return LoadMemory.of(
        plan.layout(),
        device,
        options.slabCapacity(),
        engine.readersUse(plan.reads(), false, device, options));
  }

  /// The memory of [GantrySession#loadSlices] onto one device.
  public LoadMemory slices(List<Sliced> parts, Device device, TransferOptions options) {
    List<Read> reads = NewSlabs.Slices.plan(List.of(parts), options).reads();
    return LoadMemory.of(
        NewSlabs.Slices.layout(parts, options),
        device,
        0,
        engine.readersUse(reads, true, device, options));
  }

  /// The memory of [GantrySession#fill] of so many bytes each.
  public LoadMemory fill(List<Long> bytes, Device device, TransferOptions options) {
    return FillOperation.memory(bytes, device, options.limits());
  }

  /// The memory of [GantrySession#map], without what is mapped: that is the files' own.
  public LoadMemory map(List<ExtentRequest> wanted) {
    boolean resident = ResidentLoad.serves(wanted, TransferOptions.defaults());
    return !resident && engine.calls().descriptorAbsence().isEmpty()
        ? MapOperation.memory(wanted)
        : load(wanted, Device.HOST, TransferOptions.defaults());
  }

  /// The memory of loads that run at once, given what each of them takes.
  public MemoryUse atOnce(MemoryUse loads, Device device, TransferOptions options) {
    return engine.sharedUse(loads, device, options);
  }

  /// The memory of [GantrySession#ring]; see [Rings#use].
  public MemoryUse ring(RingOptions options, long rows, long normalizedTableBytes) {
    return engine.using(() -> rings.use(options, rows, normalizedTableBytes));
  }

  /// The memory that [GantrySession#write] takes for itself; see [WriteOperation#use].
  public MemoryUse write(List<NewFile> files, boolean inMemory, WriteOptions options) {
    return engine.using(() -> WriteOperation.use(engine, files, inMemory, options));
  }
}
