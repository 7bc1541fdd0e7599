// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CopyPiece;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/// A batch whose rows a kernel or the CPU copies out of kept files. The files stay kept until the
/// gathering is closed, which must happen after the kernel has run. Only one thread may use an
/// instance at a time, except that several may call [#copy] at once.
public final class Gathering implements AutoCloseable {
  /// The most bytes that one thread block copies; a larger row is split into pieces for several
  /// blocks.
  private static final long PIECE_BYTES = 64 << 10;

  private final KeptFiles files;
  private final KeptFiles.Lease lease;
  private final Gathers gathers;

  /// The kept file for each index of a file in `gathers`. Nearly every row of samples in random
  /// order has another file than the row before, so a lookup by index must be fast.
  private final List<KeptFile> kept;

  private final List<Fused> fused;
  private final int pieces;

  /// Samples that the normalising kernel fetches itself, so that [#launch] leaves them out.
  ///
  /// @param first the index of the first gather of these samples
  /// @param end the index after the last gather of these samples
  public record Fused(NormalizedRows rows, int first, int end) {}

  /// Receives gathers one by one.
  @FunctionalInterface
  public interface Sink {
    /// @param source the address of the first byte in the kept file
    /// @param slotOffset where the bytes go, in bytes from the slot's start
    void gather(long source, long slotOffset, long bytes);
  }

  /// @param lease the kept files; [#close] closes the lease
  /// @param normalized the samples to normalise; if possible, the normalising kernel fetches them
  ///     itself
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

  /// Looks for consecutive gathers, from `first` on, that together are exactly these samples and
  /// each are whole samples. Returns the index after the last of them, or 0 if there are no such
  /// gathers.
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

  /// Calls `sink` with all gathers that the gathering kernel does.
  private void forEachPlain(Sink sink) {
    int at = 0;
    for (Fused each : fused) {
      forEach(at, each.first, sink);
      at = each.end;
    }
    forEach(at, gathers.count(), sink);
  }

  /// Calls `sink` with the gathers that the normalising kernel does.
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

  /// Returns how many bytes are gathered.
  public long bytes() {
    return gathers.bytes();
  }

  /// Returns the bytes of the kernel's table of pieces.
  public long tableBytes() {
    return (long) pieces * CopyPiece.BYTES;
  }

  /// Writes the kernel's table of pieces.
  ///
  /// @param table pinned memory of [#tableBytes] or more, which stays allocated until the kernel
  ///     has run
  /// @param slot the address of the slot on the device
  public void prepare(MemorySegment table, long slot) {
    long[] index = {0};
    forEachPlain((source, slotOffset, bytes) ->
        index[0] = CopyPiece.write(table, index[0], source, slot + slotOffset, bytes, PIECE_BYTES));
  }

  /// Queues the kernel on a stream. The device's context must be current.
  ///
  /// @param table the address of the table that [#prepare] wrote
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

  /// Copies some rows on the calling thread, out of files that were copied for the CPU.
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

  /// Checks that no file was changed in place. The ring calls this after the kernel has run,
  /// before the consumer gets the batch.
  ///
  /// @throws dev.gantry.core.MalformedFileException if a file was changed in place since it was
  ///     registered
  public void requireUnchanged() {
    lease.requireUnchanged();
  }

  @Override
  public void close() {
    lease.close();
  }
}
