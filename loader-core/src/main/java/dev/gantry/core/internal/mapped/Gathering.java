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

/// A batch whose rows a kernel or the CPU copies out of kept files. The files stay kept until this is closed,
/// which must happen after the kernel has run. One thread at a time may use this, but several may call [#copy] at once.
public final class Gathering implements AutoCloseable {
  /// The most bytes that one thread block copies; larger rows have several blocks.
  private static final long PIECE_BYTES = 64 << 10;

  private final KeptFiles files;
  private final KeptFiles.Lease lease;
  private final Gathers gathers;

  /// The kept file of each of the gathers' files, since samples in random order change the file with nearly every row.
  private final List<KeptFile> kept;

  private final List<Fused> fused;
  private final int pieces;

  /// Samples that another kernel fetches, which also normalises them.
  ///
  /// @param first the index of the first gather that brings them
  /// @param end the index after the last gather that brings them
  public record Fused(NormalizedRows rows, int first, int end) {}

  /// Takes gathers one by one.
  @FunctionalInterface
  public interface Sink {
    /// @param source the address of the first byte in the kept file
    /// @param slotOffset where the bytes go, in bytes from the slot's start
    void gather(long source, long slotOffset, long bytes);
  }

  /// @param lease the kept files; closed with this
  /// @param normalized the samples to normalise; where that can be done, another kernel fetches them
  /// @throws ArithmeticException if the batch has more pieces than a kernel can have blocks
  public Gathering(
      KeptFiles files, KeptFiles.Lease lease, Gathers gathers, List<NormalizedRows> normalized) {
    this.files = files;
    this.lease = lease;
    this.gathers = gathers;
    this.kept = gathers.files().stream().map(lease::file).toList();
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

  /// Looks for gathers, from `first` on, that together bring exactly these samples, and of which each brings
  /// whole samples. Returns the index after the last of them, or 0 if there are none.
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

  /// Hands over all gathers that this batch's kernel does.
  private void forEachPlain(Sink sink) {
    int at = 0;
    for (Fused each : fused) {
      forEach(at, each.first, sink);
      at = each.end;
    }
    forEach(at, gathers.count(), sink);
  }

  /// Hands over the gathers that another kernel does.
  public void forEach(Fused samples, Sink sink) {
    forEach(samples.first, samples.end, sink);
  }

  private void forEach(int first, int end, Sink sink) {
    for (int i = first; i < end; i++) {
      sink.gather(
          kept.get(gathers.file(i)).address(gathers.offset(i)),
          gathers.slotOffset(i),
          gathers.length(i));
    }
  }

  /// Returns the gathers that [#launch] leaves to the kernel that normalises these samples; empty if it leaves none.
  public Optional<Fused> fused(NormalizedRows rows) {
    return fused.stream().filter(each -> each.rows.equals(rows)).findFirst();
  }

  /// Returns how many bytes are fetched.
  public long bytes() {
    return gathers.bytes();
  }

  /// Returns the bytes of the kernel's table of pieces.
  public long tableBytes() {
    return (long) pieces * GatherKernel.PIECE_BYTES;
  }

  /// Writes the kernel's table of pieces.
  ///
  /// @param table memory of [#tableBytes] or more, pinned, which stays until the kernel has run
  /// @param slot the address of the slot on the device
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

  /// Queues the kernel on a stream. The device's context must be current.
  ///
  /// @param table the address of what [#prepare] wrote
  /// @throws dev.gantry.core.MalformedFileException if a file was changed in place
  public void launch(CudaContext context, long table, CudaDriver.Stream stream) {
    if (gathers.count() > 0) {
      lease.requireUnchanged();
    }
    if (pieces > 0) {
      files.kernel(context).launch(table, pieces, gathers.bytes(), stream);
    }
  }

  /// Returns how many rows there are.
  public int rows() {
    return gathers.count();
  }

  /// Copies some rows on this thread, out of files that were copied for the CPU.
  ///
  /// @param slot the memory of the whole slot
  /// @param first the index of the first row
  /// @param end the index after the last row
  public void copy(MemorySegment slot, int first, int end) {
    for (int i = first; i < end; i++) {
      MemorySegment file = kept.get(gathers.file(i)).segment();
      MemorySegment.copy(file, gathers.offset(i), slot, gathers.slotOffset(i), gathers.length(i));
    }
  }

  /// Checks that no file was changed in place. Call it when the kernel has run, before the batch is handed over.
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
