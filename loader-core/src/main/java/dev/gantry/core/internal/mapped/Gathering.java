// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.batch.Gather;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;

/// A batch whose rows a kernel fetches, or the CPU: its files stay where they are until this is closed,
/// which must come after the kernel. For one thread at a time, but for [#copy].
public final class Gathering implements AutoCloseable {
  /// Of one thread block; larger rows have several.
  private static final long PIECE_BYTES = 64 << 10;

  private final MappedFiles files;
  private final MappedFiles.Lease lease;
  private final List<Gather> gathers;
  private final long bytes;
  private final int pieces;

  /// @param lease owned by this
  /// @throws ArithmeticException if the batch has more pieces than a kernel can have blocks
  public Gathering(MappedFiles files, MappedFiles.Lease lease, List<Gather> gathers) {
    this.files = files;
    this.lease = lease;
    this.gathers = gathers;
    long all = 0;
    long count = 0;
    for (Gather gather : gathers) {
      all += gather.from().length();
      count += Math.ceilDiv(gather.from().length(), PIECE_BYTES);
    }
    this.bytes = all;
    this.pieces = Math.toIntExact(count);
  }

  /// What is fetched, in bytes.
  public long bytes() {
    return bytes;
  }

  /// Room for the kernel's table of pieces, in bytes.
  public long tableBytes() {
    return (long) pieces * GatherKernel.PIECE_BYTES;
  }

  /// The most that [#tableBytes] is for so many rows of so many bytes together.
  public static long mostTableBytes(long rows, long bytes) {
    return (rows + bytes / PIECE_BYTES) * GatherKernel.PIECE_BYTES;
  }

  /// Writes the table of pieces.
  ///
  /// @param table of [#tableBytes] or more; stays until the kernel has run
  /// @param slot address of the slot on the device
  public void prepare(PinnedSlab table, long slot) {
    long index = 0;
    Location location = null;
    long begin = 0;
    for (Gather gather : gathers) {
      Extent from = gather.from();
      if (!Objects.equals(from.file(), location)) {
        location = from.file();
        begin = lease.file(location).address(0);
      }
      long source = begin + from.offset();
      long target = slot + gather.slotOffset();
      for (long done = 0; done < from.length(); done += PIECE_BYTES) {
        GatherKernel.write(
            table.segment(),
            index++,
            source + done,
            target + done,
            Math.min(PIECE_BYTES, from.length() - done));
      }
    }
  }

  /// Queues the kernel. The device's context must be current.
  ///
  /// @param table that [#prepare] wrote
  /// @throws dev.gantry.core.MalformedFileException if a file was changed in place
  public void launch(CudaContext context, PinnedSlab table, CudaDriver.Stream stream) {
    if (pieces > 0) {
      lease.requireUnchanged();
      files.kernel(context).launch(table.address(), pieces, stream);
    }
  }

  /// How many rows there are.
  public int rows() {
    return gathers.size();
  }

  /// Copies some rows on this thread, out of files that were copied for the CPU.
  ///
  /// @param slot all of its memory
  public void copy(MemorySegment slot, int first, int end) {
    Location location = null;
    MemorySegment file = MemorySegment.NULL;
    for (Gather gather : gathers.subList(first, end)) {
      Extent from = gather.from();
      if (!Objects.equals(from.file(), location)) {
        location = from.file();
        file = lease.file(location).segment();
      }
      MemorySegment.copy(file, from.offset(), slot, gather.slotOffset(), from.length());
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
