// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.convert.Converters;
import dev.gantry.core.internal.convert.CudaNormalizer;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The kernels that gather and normalise the batches of one slot, and the pinned memory for their
/// tables. Only one thread may use an instance at a time.
final class SlotKernels {
  private static final long LEAST_TABLE_BYTES = 64 << 10;

  private final CudaContext context;
  private final Converters converters;

  /// The table of pieces that the kernels read; null before the first batch.
  private @Nullable PinnedSlab table;

  SlotKernels(CudaContext context, Converters converters) {
    this.context = context;
    this.converters = converters;
  }

  /// Writes the tables for a batch. No kernel reads the former tables any more, since the consumer
  /// has got the slot's previous batch.
  ///
  /// @param gathering how the batch is gathered, or null if it is read
  /// @param slot the slot's address on the device
  /// @return an action that queues the kernels on `stream`; its caller makes the device's context
  ///     current
  Runnable prepare(
      BatchPlan<?> plan, @Nullable Gathering gathering, long slot, CudaDriver.Stream stream) {
    long gathered = gathering == null ? 0 : gathering.tableBytes();
    long bytes = gathered;
    for (NormalizedRows rows : plan.normalized()) {
      bytes += CudaNormalizer.tableBytes(rows.what(), rows.rows());
    }
    List<Runnable> launches = new ArrayList<>();
    if (bytes > 0) {
      PinnedSlab pinned = table(bytes);
      MemorySegment pieces = pinned.segment();
      if (gathering != null) {
        gathering.prepare(pieces, slot);
        launches.add(() -> gathering.launch(context, pinned.address(), stream));
      }
      long at = gathered;
      for (NormalizedRows rows : plan.normalized()) {
        long begin = pinned.address() + at;
        launches.add(() -> converters.normalize(context, rows, begin, stream));
        at = prepare(rows, gathering, slot, pieces, at);
      }
    }
    return () -> launches.forEach(Runnable::run);
  }

  /// @return where the part of the table that begins at `begin` ends
  private static long prepare(
      NormalizedRows rows,
      @Nullable Gathering gathering,
      long slot,
      MemorySegment pieces,
      long begin) {
    Normalization what = rows.what();
    long to = slot + rows.to();
    Optional<Gathering.Fused> fused = gathering == null ? Optional.empty() : gathering.fused(rows);
    if (gathering == null || fused.isEmpty()) {
      return CudaNormalizer.write(
          pieces, begin, what, slot + rows.from(), rows.fromPitch(), to, rows.rows());
    }
    // The kernel reads the rows from the files' pages in the page cache, so they are not copied to
    // the slot first.
    long[] at = {begin};
    gathering.forEach(
        fused.get(),
        (source, slotOffset, bytes) -> {
          long row = (slotOffset - rows.from()) / what.fromBytes();
          at[0] =
              CudaNormalizer.write(
                  pieces,
                  at[0],
                  what,
                  source,
                  what.fromBytes(),
                  to + row * what.toBytes(),
                  bytes / what.fromBytes());
        });
    return at[0];
  }

  private PinnedSlab table(long leastBytes) {
    PinnedSlab now = table;
    if (now == null || now.size() < leastBytes) {
      release();
      // The table gets twice the bytes that it needs now, since later batches may have more
      // pieces.
      now = PinnedSlab.allocate(context, Math.max(LEAST_TABLE_BYTES, 2 * leastBytes));
      table = now;
    }
    return now;
  }

  /// Frees the table. No kernel may be running.
  void release() {
    PinnedSlab released = table;
    table = null;
    if (released != null) {
      released.release();
    }
  }
}
