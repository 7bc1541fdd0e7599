package dev.gantry.djl;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.formats.dataset.MixedOrder;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/// One epoch of a mixture. For one thread, but for [#state].
final class MixedIteration implements Iterator<Batch> {
  private final List<GantryDataset> parts;
  private final MixedState begin;
  private final long[] given;
  private final List<Long> lengths;

  /// One a dataset; null for those that have nothing more in this epoch.
  private final List<@Nullable DatasetIteration> batches = new ArrayList<>();

  private MixedOrder order;
  private boolean over;

  /// @param begin where to go on
  MixedIteration(List<GantryDataset> parts, MixedOrder order, MixedState begin, NDManager manager) {
    this.parts = parts;
    this.order = order;
    this.begin = begin;
    this.given = begin.given().stream().mapToLong(Long::longValue).toArray();
    this.lengths = new ArrayList<>(begin.lengths());
    for (int i = 0; i < given.length; i++) {
      batches.add(given[i] < lengths.get(i) ? parts.get(i).begin(manager) : null);
    }
  }

  /// Whether the epoch has no more batches.
  synchronized boolean isOver() {
    return over || order.next(given).isEmpty();
  }

  synchronized MixedState state() {
    List<Long> counts = new ArrayList<>();
    for (long count : given) {
      counts.add(count);
    }
    return new MixedState(
        begin.order(),
        begin.epoch(),
        counts,
        lengths,
        parts.stream().map(GantryDataset::state).toList());
  }

  @Override
  public boolean hasNext() {
    return source() != null;
  }

  /// The dataset whose turn it is, which has a batch; null at the end.
  private synchronized @Nullable DatasetIteration source() {
    while (!over) {
      OptionalInt turn = order.next(given);
      if (turn.isEmpty()) {
        over = true;
        break;
      }
      int part = turn.getAsInt();
      DatasetIteration source = batches.get(part);
      if (source != null && source.hasNext()) {
        return source;
      }
      // Only now it is known how many it has.
      lengths.set(part, given[part]);
      order = order.withLength(part, given[part]);
    }
    return null;
  }

  @Override
  public Batch next() {
    DatasetIteration source = source();
    if (source == null) {
      throw new NoSuchElementException("there are no more batches");
    }
    Batch batch = source.next();
    synchronized (this) {
      given[batches.indexOf(source)]++;
    }
    return batch;
  }
}
