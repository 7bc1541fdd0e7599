// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/// A batch whose rows a kernel fetches, or the CPU: its files stay where they are until this is closed,
/// which must come after the kernel. For one thread at a time, but for [#copy].
public final class Gathering implements AutoCloseable {
  /// The most bytes of one thread block; larger rows have several blocks.
  private static final long PIECE_BYTES = 64 << 10;

  private final KeptFiles files;
  private final KeptFiles.Lease lease;
  private final Gathers gathers;
  private final List<Fused> fused;
  private final int pieces;

  /// What another kernel fetches: samples that it normalises on their way.
  ///
  /// @param first of the gathers that it does
  /// @param end of them
  public record Fused(NormalizedRows rows, int first, int end) {}

  /// Takes gathers one by one.
  @FunctionalInterface
  public interface Sink {
    /// @param source address of the first byte in the file
    /// @param slotOffset where it belongs
    void gather(long source, long slotOffset, long bytes);
  }

  /// @param lease owned by this
  /// @param normalized on its way, where that can be done
  /// @throws ArithmeticException if the batch has more pieces than a kernel can have blocks
  public Gathering(
      KeptFiles files, KeptFiles.Lease lease, Gathers gathers, List<NormalizedRows> normalized) {
    this.files = files;
    this.lease = lease;
    this.gathers = gathers;
    this.fused = fuse(normalized);
    long[] count = {0};
    forEachPlain((_, _, bytes) -> count[0] += Math.ceilDiv(bytes, PIECE_BYTES));
    this.pieces = Math.toIntExact(count[0]);
  }

  private List<Fused> fuse(List<NormalizedRows> normalized) {
    List<Fused> all = new ArrayList<>();
    for (NormalizedRows rows : normalized) {
      int first = 0;
      while (first < gathers.count() && gathers.slotOffset(first) != rows.from()) {
        first++;
      }
      int end = endOfSamples(rows, first);
      if (end > first) {
        all.add(new Fused(rows, first, end));
      }
    }
    all.sort(Comparator.comparingInt(Fused::first));
    return all;
  }

  /// The end of the gathers from `first` on that bring these samples and nothing else, each of them whole; or
  /// 0 if they do not.
  private int endOfSamples(NormalizedRows rows, int first) {
    long rowBytes = rows.what().fromBytes();
    long at = rows.from();
    long end = at + rows.rows() * rowBytes;
    int next = first;
    while (next < gathers.count()
        && at < end
        && gathers.slotOffset(next) == at
        && gathers.length(next) % rowBytes == 0) {
      at += gathers.length(next++);
    }
    return rows.isDense() && at == end ? next : 0;
  }

  /// All that no other kernel fetches.
  private void forEachPlain(Sink sink) {
    int at = 0;
    for (Fused each : fused) {
      forEach(at, each.first, sink);
      at = each.end;
    }
    forEach(at, gathers.count(), sink);
  }

  /// What was left to another kernel.
  public void forEach(Fused samples, Sink sink) {
    forEach(samples.first, samples.end, sink);
  }

  private void forEach(int first, int end, Sink sink) {
    int file = -1;
    long begin = 0;
    for (int i = first; i < end; i++) {
      if (gathers.file(i) != file) {
        file = gathers.file(i);
        begin = lease.file(gathers.files().get(file)).address(0);
      }
      sink.gather(begin + gathers.offset(i), gathers.slotOffset(i), gathers.length(i));
    }
  }

  /// Whether [#launch] leaves these samples to the kernel that normalises them.
  public Optional<Fused> fused(NormalizedRows rows) {
    return fused.stream().filter(each -> each.rows.equals(rows)).findFirst();
  }

  /// What is fetched, in bytes.
  public long bytes() {
    return gathers.bytes();
  }

  /// Room for the kernel's table of pieces, in bytes.
  public long tableBytes() {
    return (long) pieces * GatherKernel.PIECE_BYTES;
  }

  /// Writes the table of pieces.
  ///
  /// @param table of [#tableBytes] or more, in pinned memory; stays until the kernel has run
  /// @param slot address of the slot on the device
  public void prepare(MemorySegment table, long slot) {
    long[] index = {0};
    forEachPlain((source, slotOffset, bytes) -> {
      for (long done = 0; done < bytes; done += PIECE_BYTES) {
        GatherKernel.write(
            table,
            index[0]++,
            source + done,
            slot + slotOffset + done,
            Math.min(PIECE_BYTES, bytes - done));
      }
    });
  }

  /// Queues the kernel. The device's context must be current.
  ///
  /// @param table address of what [#prepare] wrote
  /// @throws dev.gantry.core.MalformedFileException if a file was changed in place
  public void launch(CudaContext context, long table, CudaDriver.Stream stream) {
    if (gathers.count() > 0) {
      lease.requireUnchanged();
    }
    if (pieces > 0) {
      files.kernel(context).launch(table, pieces, stream);
    }
  }

  /// How many rows there are.
  public int rows() {
    return gathers.count();
  }

  /// Copies some rows on this thread, out of files that were copied for the CPU.
  ///
  /// @param slot all of its memory
  public void copy(MemorySegment slot, int first, int end) {
    int number = -1;
    MemorySegment file = MemorySegment.NULL;
    for (int i = first; i < end; i++) {
      if (gathers.file(i) != number) {
        number = gathers.file(i);
        file = lease.file(gathers.files().get(number)).segment();
      }
      MemorySegment.copy(file, gathers.offset(i), slot, gathers.slotOffset(i), gathers.length(i));
    }
  }

  /// Call it when the kernel has run, before the batch is handed over.
  ///
  /// @throws dev.gantry.core.MalformedFileException if a file was changed in place meanwhile
  public void requireUnchanged() {
    lease.requireUnchanged();
  }

  @Override
  public void close() {
    lease.close();
  }
}
