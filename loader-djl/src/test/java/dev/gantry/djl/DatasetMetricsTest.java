// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.metric.Metric;
import ai.djl.metric.Metrics;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class DatasetMetricsTest {
  @TempDir(factory = InMemory.class)
  private Path folder;

  private static double sum(Metrics metrics, String name) {
    return metrics.getMetric(name).stream().mapToDouble(Metric::getValue).sum();
  }

  @Test
  void aTrainersMetricsHaveWhatTheDatasetDidForEachBatch() {
    Path path = ImageShards.write(folder.resolve("shards"), 20, 20);
    try (ShardDataset dataset = ShardDataset.builder().setPath(path).setSampling(8).build();
        Training training = Fit.training(dataset.metricsListener());
        NDManager manager = NDManager.newBaseManager()) {
      Metrics metrics = new Metrics();
      for (int epoch = 0; epoch < 2; epoch++) {
        for (Batch batch : dataset.getData(manager)) {
          batch.close();
          // The listener records nothing while the trainer has no metrics.
          training.trainer.notifyListeners(
              listener -> listener.onTrainingBatch(training.trainer, null));
          training.trainer.setMetrics(metrics);
        }
      }
      // The first batch was read before the trainer had metrics, and counts together with the
      // second batch.
      assertThat(metrics.getMetric("dataset_batches")).hasSize(5);
      assertThat(sum(metrics, "dataset_batches")).isEqualTo(6);
      assertThat(sum(metrics, "dataset_bytes")).isGreaterThan(2 * 20 * ImageShards.IMAGE_BYTES);
      assertThat(metrics.getMetric("dataset_wait"))
          .hasSize(5)
          .allSatisfy(wait -> assertThat(wait.getValue()).isNotNegative());
    }
  }
}
