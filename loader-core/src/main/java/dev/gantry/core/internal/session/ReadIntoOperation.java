// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.transport.ReaderRule;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;

/// A read into memory of the caller, one device after another. All memory is checked before the
/// first byte changes.
final class ReadIntoOperation {
  private final TransferEngine engine;
  private final List<ReadInto> parts;
  private final TransferOptions options;

  /// The number of bytes of each part that have not arrived yet.
  private final AtomicLongArray missing;

  ReadIntoOperation(TransferEngine engine, List<ReadInto> parts, TransferOptions options) {
    this.engine = engine;
    this.parts = parts;
    this.options = options;
    this.missing =
        new AtomicLongArray(parts.stream().mapToLong(part -> part.extent().length()).toArray());
    MemoryCheck.ofTargets(parts);
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
      // No part is reported as complete, since not all checksums were compared.
      TransferException failed = TransferException.of("load", wrong);
      throw new TransferException.IncompleteRead(List.of(), parts.size(), failed);
    }
  }

  /// @param wanted indices of the parts in memory of `device`
  /// @param begun its element is set to true before memory changes
  private TransferReport run(Device device, List<Integer> wanted, boolean[] begun) {
    List<Integer> which =
        ResidentLoad.copy(
            parts,
            wanted,
            device,
            () -> {
              GivenMemory.synchronize(device);
              begun[0] = true;
            });
    Set<Integer> others = Set.copyOf(which);
    wanted.stream().filter(i -> !others.contains(i)).forEach(i -> missing.set(i, 0));
    return which.isEmpty() && !wanted.isEmpty()
        ? TransferReport.NOTHING
        : read(device, which, begun);
  }

  private TransferReport read(Device device, List<Integer> which, boolean[] begun) {
    List<ReadInto> wanted = which.stream().map(parts::get).toList();
    TransferOptions own =
        ReaderRule.ofLoad(
            List.of(device), wanted.stream().map(part -> part.extent().file()), options);
    GivenMemory memory =
        new GivenMemory(
            device,
            wanted,
            own,
            () -> begun[0] = true,
            (bytes, part) -> missing.addAndGet(which.get(part), -bytes));
    return LoadOperation.run(engine, memory, own);
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
