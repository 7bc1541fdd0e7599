package dev.gantry.core.commit;

import dev.gantry.core.Crc32c;
import dev.gantry.core.io.CachePolicy;
import dev.gantry.core.io.CopyQueue;
import dev.gantry.core.io.Paths;
import dev.gantry.core.io.SourceFile;
import dev.gantry.core.memory.CudaContext;
import dev.gantry.core.memory.HostSlab;
import dev.gantry.core.memory.PinnedSlab;
import dev.gantry.core.memory.StagingPool;
import dev.gantry.core.plan.PlanLimits;
import java.lang.foreign.MemorySegment;

/// Takes the CRC32C of bytes wherever they are; a device copies into one pinned buffer while this
/// thread reads the other. Thread-safe.
public final class ChecksumOperation {
  private static final long STEP_BYTES = PlanLimits.DEFAULT.requestBytes();

  private final Paths paths;

  public ChecksumOperation(Paths paths) {
    this.paths = paths;
  }

  public int of(Source source) {
    return switch (source) {
      case Source.HostMemory(MemorySegment segment) -> Crc32c.of(segment);
      case Source.DeviceMemory memory -> ofDevice(memory);
      case Source.FilePart(var extent) -> {
        try (SourceFile file = paths.openFile(extent.file(), CachePolicy.BY_RESIDENCY)) {
          yield ofFile(file, extent.offset(), extent.length());
        }
      }
    };
  }

  private static int ofFile(SourceFile file, long offset, long length) {
    HostSlab slab = HostSlab.allocate(STEP_BYTES);
    try {
      int sum = Crc32c.OF_NOTHING;
      for (long done = 0; done < length; ) {
        long step = Math.min(STEP_BYTES, length - done);
        MemorySegment bytes = slab.segment().asSlice(0, step);
        boolean direct = file.prefersDirect(offset + done, step);
        boolean _ = file.read(bytes, offset + done, step, direct);
        sum = Crc32c.combine(sum, Crc32c.of(bytes), step);
        done += step;
      }
      return sum;
    } finally {
      slab.release();
    }
  }

  private int ofDevice(Source.DeviceMemory memory) {
    CudaContext context = CudaContext.of(memory.device());
    // The copies are ordered with no stream but their own.
    context.synchronize();
    StagingPool pool = paths.stagingPool(memory.device());
    StagingPool.Pair pair = pool.take(STEP_BYTES);
    try (CopyQueue queue = new CopyQueue(context)) {
      int sum = Crc32c.OF_NOTHING;
      fetch(memory, 0, pair, queue);
      for (long done = 0; done < memory.length(); done += STEP_BYTES) {
        fetch(memory, done + STEP_BYTES, pair, queue);
        int turn = turn(done);
        queue.await(turn);
        long step = Math.min(STEP_BYTES, memory.length() - done);
        MemorySegment bytes = buffer(pair, turn).segment().asSlice(0, step);
        sum = Crc32c.combine(sum, Crc32c.of(bytes), step);
      }
      return sum;
    } finally {
      pool.giveBack(pair);
    }
  }

  private static void fetch(
      Source.DeviceMemory memory, long from, StagingPool.Pair pair, CopyQueue queue) {
    if (from < memory.length()) {
      int turn = turn(from);
      long step = Math.min(STEP_BYTES, memory.length() - from);
      queue.copyToHost(buffer(pair, turn).address(), memory.address() + from, step);
      queue.record(turn);
    }
  }

  private static int turn(long offset) {
    return (int) (offset / STEP_BYTES % 2);
  }

  private static PinnedSlab buffer(StagingPool.Pair pair, int turn) {
    return turn == 0 ? pair.first() : pair.second();
  }
}
