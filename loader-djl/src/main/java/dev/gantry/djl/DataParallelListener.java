// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDList;
import ai.djl.training.Trainer;
import ai.djl.training.listener.TrainingListenerAdapter;
import dev.gantry.djl.internal.training.OneUpdate;
import dev.gantry.djl.internal.training.TrainerParts;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Makes a training on several devices compute the same as on one device with the same batches.
/// Add it to the training's configuration, together with `optDevices`.
///
/// DJL's own parameter server sums the devices' gradients, and has the optimizer update each
/// device as a separate step. Therefore a step is too large by the factor of the number of
/// devices, Adam corrects its bias twice as fast on two devices, and parameters drift apart
/// (measured on two GPUs, DJL 0.35.1). With this listener a step takes the mean of the gradients,
/// updates the first device's parameters once, and copies them to the others. It is the mean over
/// the batch if the loss is a mean, as DJL's losses are, because each gradient is weighted by the
/// number of samples of its device. If no dataset of Gantry has split the batch, all gradients
/// have the same weight, unless the loop calls the trainer's listeners, as `EasyTrain` does.
public final class DataParallelListener extends TrainingListenerAdapter {
  /// @throws dev.gantry.core.MisuseException if the engine has a parameter server of its own
  @Override
  public void onTrainingBegin(Trainer trainer) {
    TrainerParts.of(trainer).updateOnce();
  }

  @Override
  public void onTrainingBatch(Trainer trainer, BatchData batchData) {
    // Samples are counted by device, for batches that DJL has split, too.
    int[] samples =
        Stream.of(trainer.getDevices())
            .mapToInt(device -> samples(batchData.getLabels().get(device)))
            .toArray();
    if (IntStream.of(samples).anyMatch(count -> count > 0)) {
      OneUpdate.share(trainer.getManager(), samples);
    }
  }

  private static int samples(@Nullable NDList labels) {
    if (labels == null || labels.isEmpty() || labels.head().getShape().dimension() == 0) {
      return 0;
    }
    return (int) labels.head().getShape().get(0);
  }
}
