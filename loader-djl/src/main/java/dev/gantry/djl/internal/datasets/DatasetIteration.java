// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingStatistics;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.batches.EpochChain;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.OptionalLong;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The batches of one call of `getData`. The iteration owns one ring for each device. It belongs
/// to the manager that it was made with, and ends when its batches end, when the manager closes,
/// or when the dataset closes.
///
/// Not thread-safe, except [#state] and [#close].
public final class DatasetIteration implements Iterator<Batch>, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DatasetIteration.class);

  private final String id = "gantry-dataset-" + UUID.randomUUID();
  private final NDManager manager;
  private final DatasetSettings settings;
  private final List<DeviceRing> rings = new ArrayList<>();
  private final boolean endless;
  private final DatasetState end;
  private final long progressBegin;
  private final long progressTotal;
  private final List<SlotBatch> open = new ArrayList<>();

  /// The next batch, as one slot from each ring; empty if it was not fetched yet or no batch is
  /// left.
  private List<RingBatch<BatchView>> ahead = List.of();

  private volatile DatasetState state;
  private long taken;
  private boolean ended;
  private volatile boolean superseded;

  /// The ring that reads one device's part of each batch.
  private record DeviceRing(
      ai.djl.Device device,
      Batches part,
      dev.gantry.core.Device target,
      PrefetchRing<BatchView> ring) {}

  /// @param parts the batches of each device, in the order of the devices
  public DatasetIteration(
      List<Batches> parts, DatasetState from, DatasetSettings settings, NDManager manager) {
    PyTorch.requireOpen("the manager", manager);
    Batches batches = parts.getFirst();
    this.manager = manager;
    this.settings = settings;
    this.state = from;
    this.endless = settings.epochs() == Long.MAX_VALUE;
    // An iteration ends at a multiple of n epochs (0 to n-1, n to 2n-1, ...), also if it resumes
    // within them.
    long lastEpoch = from.epoch() - from.epoch() % settings.epochs() + settings.epochs() - 1;
    this.end = batches.start().atEpoch(endless ? lastEpoch : lastEpoch + 1);
    OptionalLong perEpoch = batches.batchesPerEpoch();
    this.progressTotal = endless ? 0 : product(perEpoch, settings.epochs());
    this.progressBegin = product(perEpoch, from.epoch() % settings.epochs()) + from.batch();
    Cleanup.orUndo(() -> open(parts, from, lastEpoch), this::closeRings);
  }

  private void open(List<Batches> parts, DatasetState from, long lastEpoch) {
    for (int i = 0; i < parts.size(); i++) {
      Batches part = parts.get(i);
      ai.djl.Device device = settings.devices(manager).get(i);
      dev.gantry.core.Device target = PyTorch.arraysDevice(device);
      rings.add(
          Cleanup.orUndo(
              () ->
                  settings
                      .session()
                      .ring(settings.ring(part, target), new EpochChain(part, from, lastEpoch)),
              ring -> new DeviceRing(device, part, target, ring),
              PrefetchRing::close));
    }
    manager.attachInternal(id, this);
  }

  private void closeRings() {
    Cleanup.forEach(rings, each -> each.ring().close());
  }

  /// Returns how many batches `epochs` epochs have, or 0 if the number is not known.
  private static long product(OptionalLong perEpoch, long epochs) {
    try {
      return perEpoch.isEmpty() ? 0 : Math.multiplyExact(perEpoch.getAsLong(), epochs);
    } catch (ArithmeticException _) {
      return 0;
    }
  }

  /// The state after the last batch that was taken.
  public DatasetState state() {
    return state;
  }

  /// The state at which the next iteration begins.
  public DatasetState follower() {
    if (!endless) {
      return end;
    }
    return end.atEpoch(state.batch() == 0 ? state.epoch() : state.epoch() + 1);
  }

  /// Whether no batch is left, as far as the state tells: this reads nothing.
  public boolean isOver() {
    return state.equals(end);
  }

  public RingStatistics statistics() {
    return rings.stream()
        .map(each -> each.ring().statistics())
        .reduce(RingStatistics::beside)
        .orElseThrow();
  }

  /// Whether another iteration can begin without skipping a batch of this iteration. In an endless
  /// iteration, only the batches of the current epoch count.
  public boolean leavesNothing() {
    return ended || isOver() || (endless && taken > 0 && state.batch() == 0);
  }

  /// Marks this iteration as superseded and warns that its remaining batches are skipped.
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
      ahead = take();
      if (ahead.isEmpty()) {
        // An iteration without end stops only if its epochs have no batch, and stays where it is.
        state = endless ? state : end;
        close();
      }
    }
    return !ahead.isEmpty();
  }

  /// Takes the next slot of each ring. All rings end after the same batch, since every rank has
  /// equally many batches.
  private List<RingBatch<BatchView>> take() {
    List<RingBatch<BatchView>> slots = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          for (DeviceRing each : rings) {
            RingBatch<BatchView> next = each.ring().next().orElse(null);
            if (next != null) {
              slots.add(next);
            }
          }
          if (!slots.isEmpty() && slots.size() < rings.size()) {
            throw new IllegalStateException("only " + slots.size() + " devices have a next batch");
          }
          return slots;
        },
        () -> giveBack(slots));
  }

  private static void giveBack(List<RingBatch<BatchView>> slots) {
    Cleanup.forEach(slots, RingBatch::close);
  }

  @Override
  public Batch next() {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more batches");
    }
    List<SlotBatch> parts = new ArrayList<>();
    List<RingBatch<BatchView>> slots = ahead;
    ahead = List.of();
    NDManager batchManager = null;
    try {
      batchManager = manager.newSubManager(rings.getFirst().device());
      for (int i = 0; i < slots.size(); i++) {
        DeviceRing from = rings.get(i);
        NDManager partManager =
            slots.size() == 1 ? batchManager : batchManager.newSubManager(from.device());
        parts.add(
            SlotBatch.of(
                settings,
                from.target(),
                partManager,
                slots.get(i),
                progressBegin + taken,
                progressTotal));
      }
    } catch (RuntimeException | Error failure) {
      if (batchManager != null) {
        batchManager.close();
      }
      giveBack(slots);
      throw failure;
    }
    Batch batch =
        parts.size() == 1
            ? parts.getFirst()
            : new SplitBatch(
                batchManager,
                parts,
                partsWithSamples(slots.getFirst().label().after()),
                progressBegin + taken,
                progressTotal);
    taken++;
    state = slots.getFirst().label().after();
    open.add(parts.getFirst());
    return batch;
  }

  /// Returns how many parts of a batch, from the first, have samples that no other part has; at
  /// least 1.
  private int partsWithSamples(DatasetState after) {
    boolean last = after.batch() == 0;
    long own = rings.stream().filter(each -> !last || each.part().lastHasOwn()).count();
    return Math.max(1, (int) own);
  }

  /// Throws if no slot is free: waiting would deadlock, because only this thread can release one.
  private void requireFreeSlot() {
    open.removeIf(SlotBatch::isClosed);
    if (open.size() >= settings.slots()) {
      throw new MisuseException(
          ("at most %s batches can be open at once (optPrefetch), and %s are; close a "
                  + "batch before you take the next one")
              .formatted(settings.slots(), open.size()));
    }
  }

  /// Ends the iteration. Batches that the caller has taken stay valid. Idempotent.
  @Override
  public void close() {
    ended = true;
    manager.detachInternal(id);
    try {
      closeRings();
    } finally {
      giveBack(ahead);
      ahead = List.of();
    }
  }
}
