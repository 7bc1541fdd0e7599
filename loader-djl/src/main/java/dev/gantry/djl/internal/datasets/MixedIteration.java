// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.training.dataset.Batch;
import dev.gantry.formats.internal.order.MixedOrder;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// One epoch of a mixture. Not thread-safe, except [#state].
public final class MixedIteration implements Iterator<Batch> {
  private final Supplier<List<String>> states;
  private final MixedState begin;
  private final long[] given;
  private final List<Long> lengths;

  /// The iteration of each dataset; null for a dataset that has no more batches in this epoch.
  private final List<@Nullable DatasetIteration> batches = new ArrayList<>();

  private MixedOrder order;
  private boolean over;

  /// @param parts begins the next iteration of a dataset, by the dataset's number
  /// @param states give the current state of each dataset
  /// @param begin the position at which the iteration begins
  public MixedIteration(
      IntFunction<DatasetIteration> parts,
      Supplier<List<String>> states,
      MixedOrder order,
      MixedState begin) {
    this.states = states;
    this.order = order;
    this.begin = begin;
    this.given = begin.given().stream().mapToLong(Long::longValue).toArray();
    this.lengths = new ArrayList<>(begin.lengths());
    for (int i = 0; i < given.length; i++) {
      batches.add(given[i] < lengths.get(i) ? parts.apply(i) : null);
    }
  }

  /// Whether the epoch has no more batches.
  public synchronized boolean isOver() {
    return over || order.next(given).isEmpty();
  }

  /// Calls [DatasetIteration#supersede] of all iterations under way.
  public synchronized void supersede() {
    for (DatasetIteration source : batches) {
      if (source != null && !source.leavesNothing()) {
        source.supersede();
      }
    }
  }

  public synchronized MixedState state() {
    List<Long> counts = LongStream.of(given).boxed().toList();
    return new MixedState(begin.order(), begin.epoch(), counts, lengths, states.get());
  }

  @Override
  public boolean hasNext() {
    return turn().isPresent();
  }

  /// Returns the number of the dataset that gives the next batch; empty at the end of the epoch.
  /// It waits for the batch without the lock, so that [#state] and a close do not wait for it.
  private OptionalInt turn() {
    for (OptionalInt turn = nextTurn(); turn.isPresent(); turn = nextTurn()) {
      int part = turn.getAsInt();
      DatasetIteration source = batches.get(part);
      if (source != null && source.hasNext()) {
        return turn;
      }
      noteLength(part);
    }
    // Ends all datasets, because some may have batches that this epoch does not take.
    batches.forEach(MixedIteration::end);
    return OptionalInt.empty();
  }

  private synchronized OptionalInt nextTurn() {
    OptionalInt turn = over ? OptionalInt.empty() : order.next(given);
    over = turn.isEmpty();
    return turn;
  }

  /// Stores how many batches a dataset has, which is known only when the dataset ends.
  private synchronized void noteLength(int part) {
    lengths.set(part, given[part]);
    order = order.withLength(part, given[part]);
  }

  private static void end(@Nullable DatasetIteration source) {
    if (source != null) {
      source.close();
    }
  }

  @Override
  public Batch next() {
    return take(turn().orElseThrow(() -> new NoSuchElementException("there are no more batches")));
  }

  /// Takes and counts the batch that [#turn] waited for. It holds the lock, because another thread
  /// may call [#state].
  private synchronized Batch take(int part) {
    DatasetIteration source = Objects.requireNonNull(batches.get(part));
    Batch batch = source.next();
    given[part]++;
    if (given[part] == lengths.get(part)) {
      source.close();
    }
    return batch;
  }
}
