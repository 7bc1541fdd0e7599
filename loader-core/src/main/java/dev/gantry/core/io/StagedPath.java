package dev.gantry.core.io;

import dev.gantry.core.memory.CudaContext;
import dev.gantry.core.memory.PinnedSlab;
import dev.gantry.core.memory.Slab;
import dev.gantry.core.memory.StagingPool;
import dev.gantry.core.plan.ReadPlan.Read;

/// `staged`: each reader fills one pinned buffer while the device copies from its other one.
///
/// @param context whose device the slabs are on
/// @param pool where the buffers come from
/// @param bufferBytes the largest read
public record StagedPath(CudaContext context, StagingPool pool, long bufferBytes)
    implements TransferPath {
  @Override
  public Lane openLane() {
    return new StagedLane(context, pool, bufferBytes);
  }

  /// Two buffers, and the queue of copies from them.
  static final class StagedLane implements Lane {
    private final StagingPool pool;
    private final StagingPool.Pair pair;
    private final CopyQueue copies;
    private int turn;

    StagedLane(CudaContext context, StagingPool pool, long bufferBytes) {
      this.pool = pool;
      this.pair = pool.take(bufferBytes);
      boolean complete = false;
      try {
        copies = new CopyQueue(context);
        complete = true;
      } finally {
        if (!complete) {
          pool.giveBack(pair);
        }
      }
    }

    @Override
    public boolean read(SourceFile file, Read read, Slab target, boolean direct) {
      PinnedSlab buffer = turn == 0 ? pair.first() : pair.second();
      copies.await(turn);
      boolean went =
          file.read(
              buffer.segment().asSlice(0, read.length()),
              read.fileOffset(),
              read.required(),
              direct);
      copies.copyToDevice(target.address() + read.slabOffset(), buffer.address(), read.required());
      copies.record(turn);
      turn ^= 1;
      return went;
    }

    @Override
    public void drain() {
      copies.drain();
    }

    @Override
    public void close() {
      try {
        copies.close();
      } finally {
        pool.giveBack(pair);
      }
    }
  }
}
