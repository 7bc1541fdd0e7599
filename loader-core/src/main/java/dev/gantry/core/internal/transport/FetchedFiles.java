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
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// `mapped`: decides whether a batch is fetched by a kernel, or by the CPU out of copies of its files.
///
/// @param context whose kernels fetch, or null for the CPU
/// @param asked whether no other transport may serve
record FetchedFiles(MappedFiles mapped, @Nullable CudaContext context, boolean asked) {
  /// What a read of a short row costs the CPU: as much as that of so many bytes. Where rows are longer on
  /// average, it reads them as fast as it copies them.
  private static final long SHORT_BYTES = 16 << 10;

  /// Whether batches are likely to be fetched: files are kept for it.
  boolean isReady() {
    return mapped.keepsAny(context == null);
  }

  Optional<Gathering> gathering(List<Gather> gathers, OpenFiles files, TransferCounter counter) {
    if (gathers.isEmpty()) {
      return refused("these batches are decoded by the CPU");
    }
    Map<Location, long[]> wanted = wanted(gathers);
    if (context == null) {
      long bytes = gathers.stream().mapToLong(gather -> gather.from().length()).sum();
      if (bytes > SHORT_BYTES * gathers.size()) {
        return Optional.empty();
      }
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
          if (context != null) {
            uses.forEach(use -> use.file().transport().fetched());
          }
          Transport transport = context == null ? Transport.HOST : Transport.MAPPED;
          counter.addRead(transport, gathering.bytes(), false, Residency.HOT);
          yield Optional.of(gathering);
        }
      };
    } finally {
      Cleanup.runAll(uses.stream().<Runnable>map(use -> use::close).toList());
    }
  }

  /// What reading the rows of each file costs, in bytes, and where they end.
  private Map<Location, long[]> wanted(List<Gather> gathers) {
    long least = context == null ? SHORT_BYTES : 0;
    Map<Location, long[]> wanted = new HashMap<>();
    Location location = null;
    long[] costAndEnd = {};
    for (Gather gather : gathers) {
      if (!Objects.equals(gather.from().file(), location)) {
        location = gather.from().file();
        costAndEnd = wanted.computeIfAbsent(location, _ -> new long[2]);
      }
      costAndEnd[0] += Math.max(least, gather.from().length());
      costAndEnd[1] = Math.max(costAndEnd[1], gather.from().end());
    }
    return wanted;
  }

  private Optional<Gathering> refused(String reason) {
    if (asked) {
      throw new DeviceUnavailableException(
          "transport mapped was asked for and cannot serve: " + reason);
    }
    return Optional.empty();
  }
}
