package dev.gantry.core.commit;

import dev.gantry.core.Crc32c;
import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.io.CopyQueue;
import dev.gantry.core.io.CuFilePath;
import dev.gantry.core.io.PathKind;
import dev.gantry.core.io.SourceFile;
import dev.gantry.core.memory.CpuSlab;
import dev.gantry.core.memory.CudaContext;
import dev.gantry.core.plan.PlanLimits;
import dev.gantry.core.plan.WritePlan.Piece;
import dev.gantry.core.plan.WritePlan.Write;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
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
    void add(PathKind path, long bytes, boolean direct);
  }

  /// A write whose bytes are in a buffer, or on their way there.
  ///
  /// @param straight whether the bytes themselves go by cuFile, and the buffer, if one was filled,
  ///     is for the checksums
  private record Pending(FileCommit file, int number, int buffer, boolean straight) {
    Write write() {
      return file.plan().writes().get(number);
    }
  }

  private final Buffers buffers;
  private final boolean checksums;
  private final Map<Path, SourceFile> sources;
  private final Account account;
  private final Map<Device.Cuda, CopyQueue> queues = new HashMap<>();
  private @Nullable Pending pending;
  private int turn;

  /// The two buffers of a lane, and what becomes of them.
  ///
  /// @param giveBack called once, when no copy into them is under way any more
  record Buffers(CpuSlab first, CpuSlab second, Runnable giveBack) {
    MemorySegment of(int turn, long length) {
      return (turn == 0 ? first : second).segment().asSlice(0, length);
    }
  }

  /// @param buffers which this gives back
  /// @param sources the open files that parts come from
  WriteLane(Buffers buffers, boolean checksums, Map<Path, SourceFile> sources, Account account) {
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
    Optional<MemorySegment> inPlace = inPlace(file, write);
    if (inPlace.isPresent() && target.takes(inPlace.get(), write.offset())) {
      int[] sums = sums(write, inPlace.get());
      boolean direct = target.write(inPlace.get(), write.offset());
      account(file, write, direct);
      file.written(number, sums);
      return;
    }
    boolean straight = file.straight().isPresent() && canGoStraight(file, write);
    if (!straight || checksums) {
      fill(file, write, turn);
    }
    Pending next = new Pending(file, number, turn, straight);
    turn ^= 1;
    drain();
    pending = next;
  }

  /// The write's bytes, where they lie together in the CPU's memory.
  private static Optional<MemorySegment> inPlace(FileCommit file, Write write) {
    if (write.pieces().size() != 1) {
      return Optional.empty();
    }
    Piece piece = write.pieces().getFirst();
    return switch (file.file().parts().get(piece.part())) {
      case Source.HostMemory(MemorySegment segment) when segment.isNative() ->
          Optional.of(segment.asSlice(piece.partOffset(), piece.length()));
      case Source.HostMemory _, Source.DeviceMemory _, Source.FilePart _ -> Optional.empty();
    };
  }

  /// Whether the write is whole blocks of one aligned piece of device memory, which cuFile moves
  /// without a bounce buffer.
  private static boolean canGoStraight(FileCommit file, Write write) {
    Piece piece = write.pieces().getFirst();
    return write.pieces().size() == 1
        && write.length() % PlanLimits.BLOCK_BYTES == 0
        && file.file().parts().get(piece.part()) instanceof Source.DeviceMemory memory
        && (memory.address() + piece.partOffset()) % PlanLimits.BLOCK_BYTES == 0;
  }

  private void fill(FileCommit file, Write write, int into) {
    MemorySegment buffer = buffers.of(into, write.paddedLength());
    for (Piece piece : write.pieces()) {
      MemorySegment place = buffer.asSlice(piece.offset(), piece.length());
      switch (file.file().parts().get(piece.part())) {
        case Source.HostMemory(MemorySegment segment) ->
            place.copyFrom(segment.asSlice(piece.partOffset(), piece.length()));
        case Source.DeviceMemory memory ->
            queue(memory.device())
                .copyToHost(place.address(), memory.address() + piece.partOffset(), piece.length());
        case Source.FilePart(var extent) ->
            source(extent.file())
                .read(place, extent.offset() + piece.partOffset(), piece.length(), false);
      }
    }
    buffer.asSlice(write.length()).fill((byte) 0);
    for (CopyQueue queue : queues.values()) {
      queue.record(into);
    }
  }

  private CopyQueue queue(Device.Cuda device) {
    return queues.computeIfAbsent(device, cuda -> new CopyQueue(CudaContext.of(cuda)));
  }

  private SourceFile source(Path file) {
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
    boolean went = last.straight() && writeStraight(last, write);
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
  private boolean writeStraight(Pending last, Write write) {
    Optional<CuFilePath> path = last.file().straight();
    Piece piece = write.pieces().getFirst();
    if (path.isPresent()
        && last.file().file().parts().get(piece.part()) instanceof Source.DeviceMemory memory) {
      try {
        boolean direct =
            path.get()
                .write(
                    last.file().file().file(),
                    CudaContext.of(memory.device()),
                    memory.address() + piece.partOffset(),
                    write.length(),
                    write.offset());
        // What cuFile writes through the page cache passes the CPU, whatever it does otherwise.
        PathKind kind = direct ? path.get().kind() : PathKind.COMPAT;
        account.add(kind, write.length(), direct);
        return true;
      } catch (TransferException failed) {
        last.file().fallBack(failed);
      }
    }
    if (!checksums) {
      fill(last.file(), write, last.buffer());
    }
    return false;
  }

  /// Each piece went the way of its part, also where others went with it.
  private void account(FileCommit file, Write write, boolean direct) {
    for (Piece piece : write.pieces()) {
      PathKind kind =
          switch (file.file().parts().get(piece.part())) {
            case Source.DeviceMemory _ -> PathKind.STAGED;
            case Source.HostMemory _, Source.FilePart _ -> PathKind.HOST;
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
    try {
      closeAll(List.copyOf(queues.values()));
    } finally {
      buffers.giveBack().run();
    }
  }

  private static void closeAll(List<CopyQueue> queues) {
    if (!queues.isEmpty()) {
      try {
        queues.getFirst().close();
      } finally {
        closeAll(queues.subList(1, queues.size()));
      }
    }
  }
}
