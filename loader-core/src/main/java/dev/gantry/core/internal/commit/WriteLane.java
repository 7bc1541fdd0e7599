package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.WritePlan.Piece;
import dev.gantry.core.internal.plan.WritePlan.Write;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.CopyQueue;
import dev.gantry.core.internal.transport.CuFilePath;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// One writer's two buffers: one is filled, by the devices that hold the bytes, while the other is
/// written. Memory of the CPU that is aligned as the file wants it is written from where it is. For
/// one thread.
final class WriteLane implements AutoCloseable {
  /// Hears of each write that is done.
  @FunctionalInterface
  interface Account {
    void add(Transport path, long bytes, boolean direct);
  }

  /// A write whose bytes are in a buffer, or on their way there.
  ///
  /// @param slices what it is made of
  /// @param straight the memory from which cuFile moves the bytes, where it does: the buffer, if it
  ///     was filled, is for the checksums then
  private record Pending(
      FileCommit file,
      int number,
      List<Source> slices,
      Source.@Nullable DeviceMemory straight,
      int buffer) {
    Write write() {
      return file.plan().writes().get(number);
    }
  }

  private final Buffers buffers;
  private final boolean checksums;
  private final Map<Location, SourceFile> sources;
  private final Account account;
  private final Map<Device.Cuda, CopyQueue> queues = new HashMap<>();
  private @Nullable Pending pending;
  private int turn;

  /// The two buffers of a lane, and what becomes of them.
  ///
  /// @param giveBack called once, when no copy into them is under way any more
  /// @param abandon called in place of it, where nobody can tell
  record Buffers(CpuSlab first, CpuSlab second, Runnable giveBack, Runnable abandon) {
    MemorySegment of(int turn, long length) {
      return (turn == 0 ? first : second).segment().asSlice(0, length);
    }
  }

  /// @param buffers which this gives back
  /// @param sources the open files that parts come from
  WriteLane(
      Buffers buffers, boolean checksums, Map<Location, SourceFile> sources, Account account) {
    this.buffers = buffers;
    this.checksums = checksums;
    this.sources = sources;
    this.account = account;
  }

  /// Carries out one write of a file; its bytes may still be on their way when this returns: see
  /// [#drain].
  void put(FileCommit file, int number) {
    TargetFile target = file.open();
    Write write = file.plan().writes().get(number);
    List<Source> slices = file.slices(write);
    Source whole = slices.size() == 1 ? slices.getFirst() : null;
    if (whole instanceof Source.HostMemory(MemorySegment bytes)
        && bytes.isNative()
        && target.takes(bytes, write.offset())) {
      int[] sums = sums(write, bytes);
      boolean direct = target.write(bytes, write.offset());
      account(file, write, direct);
      file.written(number, sums);
      return;
    }
    Source.DeviceMemory straight = straight(file, write, whole);
    Pending next = new Pending(file, number, slices, straight, turn);
    if (straight == null || checksums) {
      fill(next);
    }
    turn ^= 1;
    drain();
    pending = next;
  }

  /// The device memory that cuFile moves without a bounce buffer: whole blocks in one aligned
  /// piece.
  private static Source.@Nullable DeviceMemory straight(
      FileCommit file, Write write, @Nullable Source whole) {
    return whole instanceof Source.DeviceMemory memory
            && memory.address() % PlanLimits.BLOCK_BYTES == 0
            && write.length() % PlanLimits.BLOCK_BYTES == 0
            && file.straight().isPresent()
        ? memory
        : null;
  }

  private void fill(Pending write) {
    MemorySegment buffer = buffers.of(write.buffer(), write.write().paddedLength());
    long offset = 0;
    for (Source slice : write.slices()) {
      MemorySegment place = buffer.asSlice(offset, slice.length());
      switch (slice) {
        case Source.HostMemory(MemorySegment segment) -> place.copyFrom(segment);
        case Source.DeviceMemory memory ->
            queue(memory.device()).copyToHost(place.address(), memory.address(), memory.length());
        case Source.FilePart(var extent) ->
            source(extent.file()).read(place, extent.offset(), extent.length(), false);
      }
      offset += slice.length();
    }
    buffer.asSlice(offset).fill((byte) 0);
    for (CopyQueue queue : queues.values()) {
      queue.record(write.buffer());
    }
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

  /// Writes what is still to be written.
  void drain() {
    Pending last = pending;
    if (last == null) {
      return;
    }
    pending = null;
    Write write = last.write();
    boolean went = last.straight() != null && writeStraight(last, last.straight());
    MemorySegment buffer = buffers.of(last.buffer(), write.paddedLength());
    if (!went || checksums) {
      queues.values().forEach(queue -> queue.await(last.buffer()));
    }
    int[] sums = sums(write, buffer);
    if (!went) {
      boolean direct = last.file().open().write(buffer, write.offset());
      account(last.file(), write, direct);
    }
    last.file().written(last.number(), sums);
  }

  /// Whether cuFile took the bytes; if not, they are in the buffer.
  private boolean writeStraight(Pending last, Source.DeviceMemory memory) {
    Optional<CuFilePath> path = last.file().straight();
    if (path.isPresent()) {
      try {
        boolean direct =
            path.get()
                .write(
                    last.file().file().file(),
                    CudaContext.of(memory.device()),
                    memory.address(),
                    memory.length(),
                    last.write().offset());
        account.add(path.get().kind(), memory.length(), direct);
        return true;
      } catch (TransferException failed) {
        last.file().fallBack(failed);
      }
    }
    if (!checksums) {
      fill(last);
    }
    return false;
  }

  /// Each piece went the way of its part, also where others went with it.
  private void account(FileCommit file, Write write, boolean direct) {
    for (Piece piece : write.pieces()) {
      Transport kind =
          switch (file.file().parts().get(piece.part())) {
            case Source.DeviceMemory _ -> Transport.STAGED;
            case Source.HostMemory _, Source.FilePart _ -> Transport.HOST;
          };
      account.add(kind, piece.length(), direct);
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

  /// Waits for copies under way, whatever became of them, and gives the buffers back.
  @Override
  public void close() {
    boolean awaited = false;
    try {
      CopyQueue.closeAll(queues.values());
      awaited = true;
    } finally {
      if (awaited || allComeToRest()) {
        buffers.giveBack().run();
      } else {
        buffers.abandon().run();
      }
    }
  }

  private boolean allComeToRest() {
    return queues.keySet().stream().map(CudaContext::of).allMatch(CudaContext::comesToRest);
  }
}
