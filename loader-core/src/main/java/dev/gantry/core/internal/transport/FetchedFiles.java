// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.Gather;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.mapped.MappedFiles;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Residency;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// `mapped`: decides whether a batch is fetched by a kernel.
///
/// @param asked whether no other transport may serve
record FetchedFiles(MappedFiles mapped, CudaContext context, boolean asked) {
  Optional<Gathering> gathering(List<Gather> gathers, OpenFiles files, TransferCounter counter) {
    if (gathers.isEmpty()) {
      return refused("these batches are decoded by the CPU");
    }
    Map<Location, long[]> wanted = new HashMap<>();
    for (Gather gather : gathers) {
      long[] bytesAndEnd = wanted.computeIfAbsent(gather.from().file(), _ -> new long[2]);
      bytesAndEnd[0] += gather.from().length();
      bytesAndEnd[1] = Math.max(bytesAndEnd[1], gather.from().end());
    }
    List<OpenFiles.Use> uses = new ArrayList<>();
    try {
      Map<SourceFile, Long> sources = new LinkedHashMap<>();
      for (Map.Entry<Location, long[]> file : wanted.entrySet()) {
        OpenFiles.Use use = files.use(file.getKey());
        uses.add(use);
        SourceFile source = use.file().source();
        source.checkHolds(file.getValue()[1]);
        sources.put(source, file.getValue()[0]);
      }
      return switch (mapped.lease(context, sources, asked)) {
        case Availability.Absent<MappedFiles.Lease>(String reason) -> refused(reason);
        case Availability.Present<MappedFiles.Lease>(MappedFiles.Lease lease) -> {
          Gathering gathering =
              Cleanup.orUndo(() -> new Gathering(mapped, lease, gathers), lease::close);
          uses.forEach(use -> use.file().transport().fetched());
          counter.addRead(Transport.MAPPED, gathering.bytes(), false, Residency.HOT);
          yield Optional.of(gathering);
        }
      };
    } finally {
      Cleanup.runAll(uses.stream().<Runnable>map(use -> use::close).toList());
    }
  }

  private Optional<Gathering> refused(String reason) {
    if (asked) {
      throw new DeviceUnavailableException(
          "transport mapped was asked for and cannot serve: " + reason);
    }
    return Optional.empty();
  }
}
