// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingStatistics;
import dev.gantry.djl.internal.torch.OpenMpAdvice;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.batches.EpochChain;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The batches of one call of `getData`. It owns a ring, and belongs to the manager that it was
/// made with: it ends when the batches do, when the manager closes, or when the dataset does.
///
/// For one thread, but for [#state] and [#close].
public final class DatasetIteration implements Iterator<Batch>, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DatasetIteration.class);

  private final String id = "gantry-dataset-" + UUID.randomUUID();
  private final NDManager manager;
  private final ai.djl.Device device;
  private final int slots;
  private final BatchArrays arrays;
  private final PrefetchRing<BatchView> ring;
  private final boolean endless;
  private final DatasetState end;
  private final long progressBegin;
  private final long progressTotal;
  private final List<SlotBatch> open = new ArrayList<>();
  private Optional<RingBatch<BatchView>> ahead = Optional.empty();
  private volatile DatasetState state;
  private long taken;
  private boolean ended;
  private volatile boolean superseded;

  public DatasetIteration(
      Batches batches, DatasetState from, DatasetSettings settings, NDManager manager) {
    this.manager = manager;
    this.device = settings.device().orElseGet(manager::getDevice);
    this.slots = settings.slots();
    this.state = from;
    this.endless = settings.epochs() == Long.MAX_VALUE;
    // Iterations cover the epochs 0 to n-1, n to 2n-1 and so on, wherever one of them goes on.
    long lastEpoch = from.epoch() - from.epoch() % settings.epochs() + settings.epochs() - 1;
    this.end = batches.start().atEpoch(endless ? lastEpoch : lastEpoch + 1);
    OptionalLong perEpoch = batches.batchesPerEpoch();
    this.progressTotal = endless ? 0 : product(perEpoch, settings.epochs());
    this.progressBegin = product(perEpoch, from.epoch() % settings.epochs()) + from.batch();
    dev.gantry.core.Device target = PyTorch.device(device);
    if (target instanceof dev.gantry.core.Device.Host) {
      OpenMpAdvice.logOnce();
    }
    this.arrays = new BatchArrays(settings, target);
    this.ring =
        settings
            .session()
            .ring(settings.ring(batches, target), new EpochChain(batches, from, lastEpoch));
    boolean complete = false;
    try {
      manager.attachInternal(id, this);
      complete = true;
    } finally {
      if (!complete) {
        ring.close();
      }
    }
  }

  /// How many batches so many epochs have, or 0 where that is not known.
  private static long product(OptionalLong perEpoch, long epochs) {
    try {
      return perEpoch.isEmpty() ? 0 : Math.multiplyExact(perEpoch.getAsLong(), epochs);
    } catch (ArithmeticException _) {
      return 0;
    }
  }

  /// Behind the last batch that was taken.
  public DatasetState state() {
    return state;
  }

  /// Where the next iteration begins.
  public DatasetState follower() {
    if (!endless) {
      return end;
    }
    return end.atEpoch(state.batch() == 0 ? state.epoch() : state.epoch() + 1);
  }

  /// Whether nothing is to come, as far as that is known.
  public boolean isOver() {
    return state.equals(end);
  }

  public RingStatistics statistics() {
    return ring.statistics();
  }

  /// Whether another iteration may begin without a batch of this one being left out, or one of the
  /// epoch at hand where it has no end.
  public boolean leavesNothing() {
    return ended || isOver() || (endless && taken > 0 && state.batch() == 0);
  }

  /// Warns that another iteration begins, which leaves out what this one has left.
  public void supersede() {
    superseded = true;
    LOG.warn(
        "getData was called again after {} batches of an iteration that has more; the others are"
            + " skipped",
        taken);
  }

  @Override
  public boolean hasNext() {
    if (superseded) {
      throw new MisuseException(
          "a later getData of the same dataset ended this iteration; take its batches before that,"
              + " or build a second dataset for nested loops");
    }
    if (!ended && ahead.isEmpty()) {
      requireFreeSlot();
      ahead = ring.next();
      if (ahead.isEmpty()) {
        state = end;
        close();
      }
    }
    return ahead.isPresent();
  }

  @Override
  public Batch next() {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more batches");
    }
    RingBatch<BatchView> slot = ahead.orElseThrow();
    ahead = Optional.empty();
    NDManager batchManager = null;
    SlotBatch batch;
    try {
      batchManager = manager.newSubManager(device);
      batch = arrays.batch(batchManager, slot, progressBegin + taken, progressTotal);
    } catch (RuntimeException | Error failure) {
      if (batchManager != null) {
        batchManager.close();
      }
      slot.close();
      throw failure;
    }
    taken++;
    state = slot.label().after();
    open.add(batch);
    return batch;
  }

  /// Fails fast: waiting would deadlock, because only this thread can release a slot.
  private void requireFreeSlot() {
    open.removeIf(SlotBatch::isClosed);
    if (open.size() >= slots) {
      throw new MisuseException(
          "at most "
              + slots
              + " batches can be open at once (optPrefetch), and "
              + open.size()
              + " are; close a batch before you take the next one");
    }
  }

  /// Ends the iteration; batches that are out stay valid. Idempotent.
  @Override
  public void close() {
    ended = true;
    manager.detachInternal(id);
    try {
      ring.close();
    } finally {
      ahead.ifPresent(RingBatch::close);
      ahead = Optional.empty();
    }
  }
}
