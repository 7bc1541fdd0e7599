package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.StagingPool;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// `staged`: each reader fills one pinned buffer while the device copies from its other one.
///
/// @param context whose device the slabs are on
/// @param buffers where the buffers come from
/// @param bufferBytes at least the largest read
/// @param sleepers whether readers sleep while they wait for a buffer: where copies are held until
///     a slab is free
public record StagedPath(
    CudaContext context, StagingPool.Share buffers, long bufferBytes, boolean sleepers)
    implements TransferPath {
  /// Opens what one reader thread needs.
  ///
  /// @param wanted whether to wait where all buffers are in use, as of [StagingPool.Share#take]
  /// @return null where the caller would wait and does not want to
  @Nullable StagedLane openLane(BooleanSupplier wanted) {
    StagingPool.Pair pair = buffers.take(bufferBytes, wanted);
    return pair == null ? null : new StagedLane(this, pair);
  }

  /// Two buffers, and the queue of copies from them. Reads that are smaller than a buffer share it,
  /// as long as their copies are queued on one stream.
  static final class StagedLane implements Lane {
    private final CudaContext context;
    private final StagingPool.Share buffers;
    private final StagingPool.Pair pair;
    private final CopyQueue copies;
    private final long bufferBytes;
    private int turn;
    private long used;
    private CudaDriver.@Nullable Stream stream;
    private boolean awaited;

    private StagedLane(StagedPath path, StagingPool.Pair pair) {
      this.context = path.context;
      this.buffers = path.buffers;
      this.bufferBytes = path.bufferBytes;
      this.pair = pair;
      boolean complete = false;
      try {
        copies = new CopyQueue(path.context, path.sleepers);
        complete = true;
      } finally {
        if (!complete) {
          buffers.giveBack(pair);
        }
      }
    }

    @Override
    public boolean read(SourceFile file, Read read, Target target, boolean direct) {
      if (used + read.length() > bufferBytes || target.stream() != stream) {
        turnToTheOther(target);
      }
      PinnedSlab buffer = turn == 0 ? pair.first() : pair.second();
      boolean went =
          file.read(
              buffer.segment().asSlice(used, read.length()),
              read.fileOffset(),
              read.required(),
              direct);
      copies.copyToDevice(
          target.slab().address() + read.slabOffset(), buffer.address() + used, read.required());
      used += read.length();
      return went;
    }

    private void turnToTheOther(Target target) {
      finishBuffer();
      copies.turnTo(target.stream());
      stream = target.stream();
    }

    /// What was read into one buffer is marked as such; then the other one is awaited, and only
    /// taken when that has not failed.
    private void finishBuffer() {
      copies.record(turn);
      copies.await(turn ^ 1);
      turn ^= 1;
      used = 0;
    }

    @Override
    public void drain() {
      copies.drain();
    }

    @Override
    public void close() {
      Cleanup.runAll(List.of(this::awaitBoth, copies::close, this::leaveBuffers));
    }

    private void awaitBoth() {
      copies.record(turn);
      copies.await(turn ^ 1);
      copies.await(turn);
      awaited = true;
    }

    private void leaveBuffers() {
      if (awaited || context.comesToRest()) {
        buffers.giveBack(pair);
      } else {
        buffers.abandon();
      }
    }
  }
}
