// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.commit.FileCommit.WriteTask;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.plan.WritePlan.Piece;
import dev.gantry.core.internal.plan.WritePlan.Write;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.CuFileTransport;
import dev.gantry.core.internal.transport.FileTransport;
import dev.gantry.core.internal.transport.TransportOracle;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Writes files with two buffers: devices fill one buffer while the calling thread writes the
/// other. Host memory with the alignment that the file needs is written without a buffer. Not
/// thread-safe.
final class DoubleBufferedWriter implements AutoCloseable {
  /// The two buffers of a writer.
  ///
  /// @param giveBack run once, when no copy into the buffers is running any more
  /// @param abandon run instead of `giveBack` if waiting for a device's copies failed
  record Buffers(CpuSlab first, CpuSlab second, Runnable giveBack, Runnable abandon) {
    MemorySegment of(int turn, long length) {
      return (turn == 0 ? first : second).segment().asSlice(0, length);
    }
  }

  /// A write whose bytes are in a buffer, or are being copied to it.
  ///
  /// @param straight the device memory that cuFile writes without the buffer; empty if the buffer
  ///     is written. If not empty, the bytes in the buffer serve only for the checksums
  private record Pending(
      WriteTask task, List<Source> slices, List<Memory.OnDevice> straight, int buffer) {}

  private final Buffers buffers;
  private final boolean checksums;
  private final Map<Location, SourceFile> sources;
  private final TransferCounter counter;
  private final Map<Device.Cuda, CopyQueue> queues = new HashMap<>();
  private @Nullable Pending pending;
  private int turn;

  /// Made with the writer, so that closing it needs no heap.
  private final Runnable closeQueues = this::closeQueues;

  private final Runnable leaveBuffers = this::leaveBuffers;

  /// @param buffers the writer's buffers; [#close] gives them back
  /// @param sources the open files from which parts of the new files come
  DoubleBufferedWriter(
      Buffers buffers,
      boolean checksums,
      Map<Location, SourceFile> sources,
      TransferCounter counter) {
    this.buffers = buffers;
    this.checksums = checksums;
    this.sources = sources;
    this.counter = counter;
  }

  /// Begins one write. If this call does not complete the write, the next call or [#drain] does.
  void put(WriteTask task) {
    TargetFile target = task.file().open();
    Write write = task.write();
    List<Source> slices = task.slices();
    boolean whole = slices.size() == 1;
    if (whole
        && slices.getFirst() instanceof Memory.OnHost(MemorySegment bytes)
        && bytes.isNative()
        && target.takes(bytes, write.offset())) {
      int[] sums = sums(write, bytes);
      count(task, target.write(bytes, write.offset()));
      task.file().written(task.number(), sums);
      return;
    }
    List<Memory.OnDevice> straight = straight(task.file().transport(), slices);
    Pending next = new Pending(task, slices, straight, turn);
    if (straight.isEmpty() || checksums) {
      fill(next);
    }
    turn ^= 1;
    drain();
    pending = next;
  }

  /// Returns the device memory that cuFile writes without a buffer; empty if any byte of the write needs one.
  private static List<Memory.OnDevice> straight(FileTransport transport, List<Source> slices) {
    Transport ofFile = transport.of(false);
    boolean together =
        slices.size() == 1
            || (slices.size() <= CuFile.MAX_PIECES
                && transport.usesCuFile()
                && transport.cuFile().writesTogether());
    List<Memory.OnDevice> straight = new ArrayList<>();
    for (Source slice : slices) {
      switch (TransportOracle.ofWrite(slice, together, ofFile)) {
        case GDS, COMPAT -> straight.add((Memory.OnDevice) slice);
        case STAGED, MAPPED, HOST -> {
          return List.of();
        }
      }
    }
    return straight.stream().map(Memory.OnDevice::device).distinct().count() == 1
        ? straight
        : List.of();
  }

  private void fill(Pending next) {
    MemorySegment buffer = buffers.of(next.buffer(), next.task().write().paddedLength());
    long offset = 0;
    for (Source slice : next.slices()) {
      MemorySegment place = buffer.asSlice(offset, slice.length());
      switch (slice) {
        case Memory.OnHost(MemorySegment segment) -> place.copyFrom(segment);
        case Memory.OnDevice memory ->
            queue(memory.device()).copyToHost(place.address(), memory.address(), memory.length());
        case Source.FilePart(var extent) -> {
          boolean _ = source(extent.file()).read(place, extent.offset(), extent.length(), false);
        }
      }
      offset += slice.length();
    }
    buffer.asSlice(offset).fill((byte) 0);
    queues.values().forEach(queue -> queue.record(next.buffer()));
  }

  private CopyQueue queue(Device.Cuda device) {
    return queues.computeIfAbsent(device, cuda -> new CopyQueue(CudaContext.of(cuda)));
  }

  private SourceFile source(Location file) {
    SourceFile source = sources.get(file);
    if (source == null) {
      throw new IllegalStateException("not open: " + file);
    }
    return source;
  }

  /// Completes the write that was begun last.
  void drain() {
    Pending last = pending;
    if (last == null) {
      return;
    }
    pending = null;
    WriteTask task = last.task();
    Write write = task.write();
    boolean written = !last.straight().isEmpty() && writeStraight(last, last.straight());
    MemorySegment buffer = buffers.of(last.buffer(), write.paddedLength());
    if (!written || checksums) {
      queues.values().forEach(queue -> queue.await(last.buffer()));
    }
    int[] sums = sums(write, buffer);
    if (!written) {
      count(task, task.file().open().write(buffer, write.offset()));
    }
    task.file().written(task.number(), sums);
  }

  /// Has cuFile write device memory. Returns false if cuFile fails; the bytes are then written
  /// from the buffer.
  private boolean writeStraight(Pending last, List<Memory.OnDevice> memory) {
    FileCommit file = last.task().file();
    FileTransport transport = file.transport();
    if (transport.usesCuFile()) {
      CuFileTransport cuFile = transport.cuFile();
      try {
        boolean direct = cuFile.write(file.file().file(), memory, last.task().write().offset());
        long bytes = memory.stream().mapToLong(Memory.OnDevice::length).sum();
        counter.addWritten(cuFile.transport(), bytes, direct);
        return true;
      } catch (TransferException failed) {
        if (transport.fallBack(cuFile.transport(), failed)) {
          counter.addFallback();
        }
      }
    }
    if (!checksums) {
      fill(last);
    }
    return false;
  }

  /// Counts each piece under the transport of its memory, although one request wrote all pieces.
  private void count(WriteTask task, boolean direct) {
    for (Piece piece : task.write().pieces()) {
      Source part = task.file().file().parts().get(piece.part());
      Transport transport = TransportOracle.ofWrite(part, false, Transport.STAGED);
      counter.addWritten(transport, piece.length(), direct);
    }
  }

  private int[] sums(Write write, MemorySegment bytes) {
    if (!checksums) {
      return new int[0];
    }
    List<Piece> pieces = write.pieces();
    return pieces.stream()
        .mapToInt(piece -> Crc32c.of(bytes.asSlice(piece.offset(), piece.length())))
        .toArray();
  }

  /// Waits for running copies, also after a failure, and gives the buffers back.
  @Override
  public void close() {
    Cleanup.orUndo(closeQueues, leaveBuffers);
    buffers.giveBack().run();
  }

  private void closeQueues() {
    CopyQueue.closeAll(queues.values());
  }

  private void leaveBuffers() {
    boolean rest = queues.keySet().stream().map(CudaContext::of).allMatch(CudaContext::comesToRest);
    (rest ? buffers.giveBack() : buffers.abandon()).run();
  }
}
