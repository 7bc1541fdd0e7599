// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.LoadEvent;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ScatterPlan;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.internal.transport.Transports;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;

/// One read into memory that is there, of one device after the other. All is checked before the first
/// byte changes.
final class ReadIntoOperation {
  private final Transports transports;
  private final List<ReadInto> parts;
  private final TransferOptions options;
  private final MemoryCheck memories;

  /// By part, how many of its bytes are still to come.
  private final AtomicLongArray missing;

  ReadIntoOperation(Transports transports, List<ReadInto> parts, TransferOptions options) {
    this.transports = transports;
    this.parts = parts;
    this.options = options;
    this.missing =
        new AtomicLongArray(parts.stream().mapToLong(part -> part.extent().length()).toArray());
    this.memories = MemoryCheck.ofTargets(parts);
  }

  /// What the read takes for itself, of one device after the other.
  static MemoryUse memory(Transports transports, List<ReadInto> parts, TransferOptions options) {
    Map<Device, List<Extent>> byDevice = new LinkedHashMap<>();
    for (ReadInto part : parts) {
      byDevice.computeIfAbsent(part.memory().device(), _ -> new ArrayList<>()).add(part.extent());
    }
    MemoryUse most = MemoryUse.NOTHING;
    for (Map.Entry<Device, List<Extent>> device : byDevice.entrySet()) {
      ScatterPlan plan = ScatterPlan.of(device.getValue(), options.limits());
      most = most.max(transports.readersUse(plan, device.getKey(), options));
    }
    return most;
  }

  TransferReport run() {
    Map<Device, List<Integer>> byDevice = new LinkedHashMap<>();
    for (int i = 0; i < parts.size(); i++) {
      byDevice.computeIfAbsent(parts.get(i).memory().device(), _ -> new ArrayList<>()).add(i);
    }
    TransferReport report = TransferReport.NOTHING;
    boolean[] begun = {false};
    try {
      for (Map.Entry<Device, List<Integer>> device : byDevice.entrySet()) {
        report = report.plus(run(device.getKey(), device.getValue(), begun));
      }
      return report;
    } catch (TransferException failed) {
      throw begun[0]
          ? new TransferException.IncompleteRead(complete(), parts.size(), failed)
          : failed;
    } catch (MalformedFileException wrong) {
      if (!begun[0]) {
        throw wrong;
      }
      // The others were not all compared.
      TransferException failed = TransferException.of("load", wrong);
      throw new TransferException.IncompleteRead(List.of(), parts.size(), failed);
    }
  }

  /// @param wanted the parts in memory of `device`
  /// @param begun is set when memory may change
  private TransferReport run(Device device, List<Integer> wanted, boolean[] begun) {
    List<Integer> which =
        ResidentLoad.copy(
            parts,
            wanted,
            device,
            () -> {
              synchronize(device);
              begun[0] = true;
            });
    Set<Integer> others = Set.copyOf(which);
    wanted.stream().filter(i -> !others.contains(i)).forEach(i -> missing.set(i, 0));
    return which.isEmpty() && !wanted.isEmpty()
        ? TransferReport.NOTHING
        : read(device, which, begun);
  }

  /// Kernels that use the memory may be queued: copies are ordered with no stream.
  private static void synchronize(Device device) {
    if (device instanceof Device.Cuda cuda) {
      CudaContext.of(cuda).synchronize();
    }
  }

  private TransferReport read(Device device, List<Integer> which, boolean[] begun) {
    ScatterPlan plan =
        ScatterPlan.of(which.stream().map(i -> parts.get(i).extent()).toList(), options.limits());
    LoadEvent event = new LoadEvent();
    event.begin();
    try {
      TransferReport report =
          transports.transferInto(
              plan,
              device,
              () -> {
                synchronize(device);
                begun[0] = true;
                return plan.steps().stream().map(step -> target(step, which)).toList();
              },
              options,
              step ->
                  step.pieces()
                      .forEach(
                          piece -> missing.addAndGet(which.get(piece.part()), -piece.length())));
      event.done(device, which.size(), report);
      return report;
    } catch (RuntimeException | Error failure) {
      event.failed(device, which.size(), failure);
      throw failure;
    }
  }

  private Target target(ScatterPlan.Step step, List<Integer> which) {
    return new Target.InPlace(
        step.pieces().stream()
            .map(piece -> {
              int part = which.get(piece.part());
              Memory memory = parts.get(part).memory();
              return new Target.Landing(
                  piece.offset(),
                  memory.slice(piece.partOffset(), piece.length()),
                  memories.region(part));
            })
            .toList());
  }

  private List<String> complete() {
    List<String> complete = new ArrayList<>();
    for (int i = 0; i < parts.size(); i++) {
      if (missing.get(i) == 0) {
        complete.add(parts.get(i).name());
      }
    }
    return complete;
  }
}
