// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.plan.ReadIntoPlan;
import dev.gantry.core.internal.plan.ReadIntoPlan.Step;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.plan.StridedRange;
import dev.gantry.core.internal.transport.PlannedTransfer.Task;
import dev.gantry.core.internal.transport.TransferEngine.Spread;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.List;
import java.util.function.ObjIntConsumer;

/// Memory of the caller on one device. Only the bytes that the load fills change.
final class GivenMemory implements Destination {
  private final Device device;
  private final List<Memory> memories;
  private final ReadIntoPlan plan;
  private final Runnable begin;
  private final ObjIntConsumer<Long> arrived;

  /// @param begin run before the memory changes, after all queued work that uses it
  /// @param arrived called on any thread with a part and the number of its bytes that have
  ///     arrived; it was called, too, for bytes that arrived before a failure
  GivenMemory(
      Device device,
      List<ReadInto> parts,
      TransferOptions options,
      Runnable begin,
      ObjIntConsumer<Long> arrived) {
    this.device = device;
    this.memories = parts.stream().map(ReadInto::memory).toList();
    this.plan =
        Planner.planInto(
            parts.stream()
                .map(part ->
                    part.extent().length() == 0
                        ? List.<StridedRange>of()
                        : List.of(StridedRange.of(part.extent(), 0)))
                .toList(),
            options.limits());
    this.begin = begin;
    this.arrived = arrived;
  }

  /// The memory that a read fills.
  ///
  /// @param memories the memory of each part
  static Target target(Step step, List<Memory> memories) {
    return new Target.Scattered(
        step.pieces().stream()
            .map(piece -> new Target.Piece(piece.rows(), memories.get(piece.part())))
            .toList());
  }

  /// Waits for kernels that use the memory, since the load's copies are on other streams and would
  /// not wait for them.
  static void synchronize(Device device) {
    if (device instanceof Device.Cuda cuda) {
      CudaContext.of(cuda).synchronize();
    }
  }

  @Override
  public List<Device> devices() {
    return List.of(device);
  }

  @Override
  public List<Read> reads() {
    return plan.reads();
  }

  @Override
  public Spread spread() {
    return Spread.ONE_DEVICE;
  }

  @Override
  public int parts() {
    return memories.size();
  }

  @Override
  public List<Task> prepare() {
    synchronize(device);
    begin.run();
    return plan.steps().stream()
        .map(step -> new Task(step.read(), target(step, memories), () -> tell(step)))
        .toList();
  }

  private void tell(Step step) {
    step.pieces().forEach(piece -> arrived.accept(piece.rows().bytes(), piece.part()));
  }

  @Override
  public TransferReport finish(TransferReport report) {
    return report;
  }

  /// Frees nothing, since the caller owns the memory.
  @Override
  public void undo(Throwable failure) {}
}
