// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import ai.djl.metric.Metrics;
import ai.djl.metric.Unit;
import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import dev.gantry.core.internal.ring.RingStatistics;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Supplier;

/// After each training batch, adds to a trainer's metrics what the dataset has read since the
/// previous batch.
public final class StatisticsListener extends TrainingListenerAdapter {
  private static final double NANOS_PER_MILLI = 1e6;

  private final Supplier<Optional<RingStatistics>> statistics;
  private long batches;
  private long bytes;
  private Duration waited = Duration.ZERO;

  /// @param statistics gives the statistics of the dataset's iteration; empty before the first
  ///     iteration
  public StatisticsListener(Supplier<Optional<RingStatistics>> statistics) {
    this.statistics = statistics;
  }

  @Override
  public void onTrainingBatch(Trainer trainer, BatchData batchData) {
    Metrics metrics = trainer.getMetrics();
    if (metrics != null) {
      statistics.get().ifPresent(now -> add(now, metrics));
    }
  }

  private void add(RingStatistics now, Metrics metrics) {
    if (now.batches() <= batches) {
      // Another iteration has begun, whose statistics count from 0.
      batches = 0;
      bytes = 0;
      waited = Duration.ZERO;
    }
    long read = now.transfer().bytes() + now.hostBytes();
    double millis = now.waited().minus(waited).toNanos() / NANOS_PER_MILLI;
    metrics.addMetric("dataset_batches", now.batches() - batches, Unit.COUNT);
    metrics.addMetric("dataset_bytes", read - bytes, Unit.BYTES);
    metrics.addMetric("dataset_wait", millis, Unit.MILLISECONDS);
    batches = now.batches();
    bytes = read;
    waited = now.waited();
  }
}
