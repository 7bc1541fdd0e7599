// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.formats.checkpoint.BusyPolicy;
import java.nio.file.Path;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Saves take two buffers for each thread and their snapshots, by the counters of memory in use.
@ExtendWith(NoLeaks.class)
class SaverMemoryTest {
  /// The memory that a snapshot may take in addition to its bytes.
  private static final long SPARE_BYTES = 1 << 20;

  /// The memory that the writing of the manifest may take.
  private static final long LEAST_BYTES = 512 << 10;

  @TempDir private Path folder;

  private static MemoryUse mostUsed(Runnable work) {
    LiveResources.forgetMostUsed();
    work.run();
    return LiveResources.mostUsed();
  }

  /// @param units the number of the layer's inputs and outputs
  @ParameterizedTest
  @CsvSource({"10, 4096", "700, 4096", "700, 1048576", "1500, 16777216"})
  void ofOneWriter(int units, long requestBytes) {
    try (NDManager manager = NDManager.newBaseManager(Device.cpu());
        Model model = Model.newInstance("model")) {
      Block block = Linear.builder().setUnits(units).build();
      block.initialize(manager, DataType.FLOAT32, new Shape(1, units));
      model.setBlock(block);
      try (CheckpointSaver saver =
          CheckpointSaver.builder()
              .setPath(folder)
              .optThreads(1)
              .optRequestBytes(requestBytes)
              .build()) {
        SaveRequest request = SaveRequest.builder().setStep(1).setModel(model).build();
        MemoryUse used = mostUsed(() -> saver.save(request).join());
        assertThat(used.hostBytes())
            .isPositive()
            .isLessThanOrEqualTo(Math.max(2 * requestBytes, LEAST_BYTES));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"WAIT, false", "WAIT, true", "QUEUE, false", "SKIP, true"})
  void withASnapshot(BusyPolicy policy, boolean prepare) {
    try (Training training = new Training(Training.perceptron(), Optimizer.adam().build());
        CheckpointSaver saver =
            CheckpointSaver.builder()
                .setPath(folder)
                .optMode(SaveMode.ASYNC)
                .optBusyPolicy(policy)
                .optThreads(1)
                .optRequestBytes(1 << 20)
                .build()) {
      training.steps(0, 2);
      MemoryUse used =
          mostUsed(() -> {
            if (prepare) {
              saver.prepare(training.model, training.trainer).join();
            }
            for (int step = 2; step < 6; step++) {
              var _ = saver.save(step, training.model, training.trainer);
            }
            saver.await();
          });
      // The state has the parameters, and Adam's means and variances.
      long state =
          3L
              * Float.BYTES
              * training.model.getBlock().getParameters().stream()
                  .mapToLong(one -> one.getValue().getArray().size())
                  .sum();
      int copies = policy == BusyPolicy.QUEUE ? 2 : 1;
      assertThat(used.hostBytes())
          .isPositive()
          .isLessThanOrEqualTo(copies * (state + SPARE_BYTES) + 2 * state + LEAST_BYTES);
      if (prepare) {
        assertThat(used.hostBytes()).isGreaterThan(SPARE_BYTES);
      }
    }
  }
}
