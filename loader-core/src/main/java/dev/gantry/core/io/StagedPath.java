package dev.gantry.core.io;

import dev.gantry.core.internal.natives.CudaDriver;
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

  /// Two buffers, a stream, and an event a buffer that says when the device has taken its bytes.
  static final class StagedLane implements Lane {
    private final CudaContext context;
    private final StagingPool pool;
    private final StagingPool.Pair pair;
    private final CudaDriver.Stream stream;
    private final CudaDriver.Event[] taken = new CudaDriver.Event[2];
    private int turn;

    StagedLane(CudaContext context, StagingPool pool, long bufferBytes) {
      this.context = context;
      this.pool = pool;
      this.pair = pool.take(bufferBytes);
      boolean complete = false;
      try (var _ = context.enter()) {
        stream = createStream(context.driver());
        complete = true;
      } finally {
        if (!complete) {
          pool.giveBack(pair);
        }
      }
    }

    /// A stream, and its two events.
    private CudaDriver.Stream createStream(CudaDriver driver) {
      CudaDriver.Stream created = driver.createStream();
      int events = 0;
      try {
        for (; events < taken.length; events++) {
          taken[events] = driver.createEvent();
        }
        return created;
      } finally {
        if (events < taken.length) {
          for (int i = 0; i < events; i++) {
            driver.destroy(taken[i]);
          }
          driver.destroy(created);
        }
      }
    }

    @Override
    public boolean read(SourceFile file, Read read, Slab target, boolean direct) {
      CudaDriver driver = context.driver();
      PinnedSlab buffer = turn == 0 ? pair.first() : pair.second();
      try (var _ = context.enter()) {
        // An event that was never recorded is done: the first two reads do not wait.
        driver.synchronize(taken[turn]);
        boolean went =
            file.read(
                buffer.segment().asSlice(0, read.length()),
                read.fileOffset(),
                read.required(),
                direct);
        driver.copyToDevice(
            target.address() + read.slabOffset(), buffer.address(), read.required(), stream);
        driver.record(taken[turn], stream);
        turn ^= 1;
        return went;
      }
    }

    @Override
    public void drain() {
      try (var _ = context.enter()) {
        context.driver().synchronize(stream);
      }
    }

    @Override
    public void close() {
      CudaDriver driver = context.driver();
      try (var _ = context.enter()) {
        driver.synchronize(stream);
        driver.destroy(taken[0]);
        driver.destroy(taken[1]);
        driver.destroy(stream);
      } finally {
        pool.giveBack(pair);
      }
    }
  }
}
