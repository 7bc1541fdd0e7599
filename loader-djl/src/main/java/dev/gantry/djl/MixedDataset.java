// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.datasets.MixedIteration;
import dev.gantry.djl.internal.datasets.MixedState;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.order.MixedOrder;
import dev.gantry.formats.internal.order.OrderIdentity;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Mixes several datasets into one: each batch comes from one of them, as often as its weight says.
///
/// An epoch takes each dataset's next iteration. Which dataset gives a batch depends only on the
/// weights, the seed and the epoch. The mixture owns the datasets and closes them. The
/// thread-safety is that of [GantryDataset].
public final class MixedDataset implements ResumableDataset {
  private final List<GantryDataset> parts;
  private final List<Double> weights;
  private final long seed;
  private final End end;

  /// The state in which the next iteration begins.
  private MixedState next;

  private @Nullable MixedIteration current;

  /// Whether the last epoch that [#settle] ended had given all of its batches, and no iteration has begun
  /// since.
  private boolean over;

  /// When an epoch is over.
  public enum End {
    /// The epoch is over when the next batch is due from a dataset that has no more.
    FIRST,
    /// The epoch is over when no dataset has any more. Datasets that have ended are passed over.
    ALL
  }

  private MixedDataset(Builder builder) {
    parts = List.copyOf(builder.parts);
    weights = List.copyOf(builder.weights);
    seed = builder.seed;
    end = builder.end;
    next = start(0);
    // The constructor refuses weights that make no order.
    MixedOrder _ = order(next);
  }

  /// A builder; datasets must be added.
  public static Builder builder() {
    return new Builder();
  }

  /// The state in which an epoch begins that none of the datasets has begun.
  private MixedState start(long epoch) {
    List<Long> lengths = lengths();
    return MixedState.start(order(lengths), epoch, lengths, states());
  }

  private List<String> states() {
    return parts.stream().map(GantryDataset::state).toList();
  }

  private List<Long> lengths() {
    return parts.stream()
        .map(part -> part.batchesPerIteration().orElse(MixedOrder.UNKNOWN))
        .toList();
  }

  /// Describes all that the turns of the datasets depend on. Which datasets they are, their own states say.
  private String order(List<Long> lengths) {
    return "datasets=%s,weights=%s,seed=%s,end=%s,batches=%s"
        .formatted(
            parts.size(),
            joined(weights.stream()),
            seed,
            end,
            joined(lengths.stream().map(MixedState::length)));
  }

  private static String joined(Stream<?> values) {
    return values.map(String::valueOf).collect(Collectors.joining(":"));
  }

  private MixedOrder order(MixedState state) {
    return MixedOrder.of(weights, state.lengths(), end == End.ALL, seed, state.epoch());
  }

  @Override
  public Iterable<Batch> getData(NDManager manager) {
    MisuseException.requireGiven("manager", manager);
    return () -> begin(manager);
  }

  private synchronized MixedIteration begin(NDManager manager) {
    if (current != null && !current.isOver()) {
      current.supersede();
    }
    settle();
    MixedIteration iteration = null;
    try {
      iteration =
          new MixedIteration(
              part -> parts.get(part).begin(manager), this::states, order(next), next);
    } finally {
      if (iteration == null) {
        // Some datasets have begun an iteration already: puts them back to where they stood.
        restoreParts(next);
      }
    }
    current = iteration;
    over = false;
    return iteration;
  }

  private void restoreParts(MixedState state) {
    for (int i = 0; i < parts.size(); i++) {
      parts.get(i).restore(state.parts().get(i));
    }
  }

  /// Ends the epoch that is under way, so that the next epoch follows.
  private void settle() {
    if (current != null) {
      current = null;
      parts.forEach(GantryDataset::endEpoch);
      next = start(next.epoch() + 1);
    }
  }

  @Override
  public synchronized String state() {
    if (current != null && current.isOver()) {
      settle();
      over = true;
    }
    return (current == null ? next : current.state()).toText();
  }

  @Override
  public synchronized boolean isEpochOver() {
    return over || (current != null && current.isOver());
  }

  @Override
  public synchronized void restore(String state) {
    MixedState restored = MixedState.parse(MisuseException.requireGiven("state", state));
    OrderIdentity.check(restored.order(), next.order());
    restored.requireLengths(lengths());
    for (int i = 0; i < parts.size(); i++) {
      DatasetState _ = parts.get(i).check(restored.parts().get(i));
    }
    settle();
    restoreParts(restored);
    next = restored;
    over = false;
  }

  @Override
  public synchronized void close() {
    Cleanup.forEach(parts, GantryDataset::close);
  }

  /// Makes [MixedDataset]s. Not thread-safe.
  public static final class Builder {
    private final List<GantryDataset> parts = new ArrayList<>();
    private final List<Double> weights = new ArrayList<>();
    private long seed;
    private End end = End.ALL;

    private Builder() {}

    /// Adds a dataset.
    ///
    /// @param weight its part of the batches, in any unit; positive
    public Builder addDataset(GantryDataset dataset, double weight) {
      if (!(weight > 0) || !Double.isFinite(weight)) {
        throw new MisuseException(
            "addDataset: weight must be a finite number above 0 (was " + weight + ")");
      }
      parts.add(MisuseException.requireGiven("addDataset: dataset", dataset));
      weights.add(weight);
      return this;
    }

    /// The seed from which the order of the datasets comes; default: 0.
    public Builder optSeed(long chosen) {
      seed = chosen;
      return this;
    }

    /// Says when an epoch is over; by default, when all datasets have ended.
    public Builder optEnd(End chosen) {
      end = MisuseException.requireGiven("optEnd", chosen);
      return this;
    }

    /// @throws MisuseException if there is no dataset, one is there twice, or a weight is more than
    ///     2^16 times another
    public MixedDataset build() {
      if (parts.isEmpty()) {
        throw new MisuseException("addDataset must be called at least once");
      }
      if (parts.stream().distinct().count() < parts.size()) {
        throw new MisuseException(
            "addDataset must be given each dataset once; to get more of its batches, raise its"
                + " weight");
      }
      return new MixedDataset(this);
    }
  }
}
