// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.mapped.KeptFiles;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Residency;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Decides whether a batch is gathered without reads: by a kernel that fetches it from the page cache (`mapped`), or by
/// the CPU from copies of the files.
///
/// @param context the context of the kernels, or null for the CPU
/// @param asked whether the caller asked for `mapped`, so that no other transport may serve
record FetchedFiles(KeptFiles mapped, @Nullable CudaContext context, boolean asked) {
  /// The cost in bytes of reading a short row: the CPU takes as long for any row shorter than this
  /// as for a row of this length. If rows are longer on average, reading them is as fast as
  /// copying them, so the CPU reads instead of gathering.
  private static final long SHORT_BYTES = 16 << 10;

  /// Whether the next batches are likely to be gathered, because copies or mappings of files are
  /// kept already.
  boolean isReady() {
    return mapped.keepsAny(context == null);
  }

  Optional<Gathering> gathering(BatchPlan<?> plan, OpenFiles files, TransferCounter counter) {
    Gathers gathers = plan.gathers();
    if (gathers.count() == 0) {
      return refused("these batches are decoded by the CPU");
    }
    if (context == null && gathers.bytes() > SHORT_BYTES * gathers.count()) {
      return Optional.empty();
    }
    long[] costs = costs(gathers);
    List<OpenFiles.Use> uses = new ArrayList<>();
    try {
      Map<SourceFile, Long> sources = new LinkedHashMap<>();
      for (int file = 0; file < costs.length; file++) {
        OpenFiles.Use use = files.use(gathers.files().get(file));
        uses.add(use);
        SourceFile source = use.file().source();
        source.checkHolds(gathers.end(file));
        sources.put(source, costs[file]);
      }
      return Cleanup.orUndo(
          () -> mapped.lease(context, sources, asked),
          found ->
              switch (found) {
                case Availability.Absent<KeptFiles.Lease>(String reason) -> refused(reason);
                case Availability.Present<KeptFiles.Lease>(KeptFiles.Lease lease) -> {
                  Gathering gathering = gathering(lease, plan);
                  if (context != null) {
                    uses.forEach(use -> use.file().transport().fetched());
                  }
                  Transport transport = context == null ? Transport.HOST : Transport.MAPPED;
                  counter.addRead(transport, gathering.bytes(), false, Residency.HOT);
                  yield Optional.of(gathering);
                }
              },
          found -> found.toOptional().ifPresent(KeptFiles.Lease::close));
    } finally {
      Cleanup.forEach(uses, OpenFiles.Use::close);
    }
  }

  /// Makes the gathering. A kernel normalises rows while it gathers them; the CPU does so afterwards.
  private Gathering gathering(KeptFiles.Lease lease, BatchPlan<?> plan) {
    return new Gathering(
        mapped, lease, plan.gathers(), context == null ? List.of() : plan.normalized());
  }

  /// The cost of reading each file's rows, in bytes; see [#SHORT_BYTES].
  private long[] costs(Gathers gathers) {
    long least = context == null ? SHORT_BYTES : 0;
    long[] costs = new long[gathers.files().size()];
    for (int i = 0; i < gathers.count(); i++) {
      costs[gathers.file(i)] += Math.max(least, gathers.length(i));
    }
    return costs;
  }

  private Optional<Gathering> refused(String reason) {
    if (asked) {
      throw new DeviceUnavailableException(
          "transport mapped was asked for and cannot serve: " + reason);
    }
    return Optional.empty();
  }
}
