// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.remote;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.SaveMode;
import dev.gantry.samples.Usage;
import java.nio.file.Path;

/// Saves checkpoints on the local disk and in S3. Run it again with another FOLDER, as on another machine:
/// it goes on from what is in S3.
///
/// `S3-FOLDER` is such as `s3://bucket/runs/seven`; credentials and region are those that the AWS SDK finds:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' CheckpointsInS3.java FOLDER S3-FOLDER
/// ```
public final class CheckpointsInS3 {
  private CheckpointsInS3() {}

  public static void main(String[] arguments) {
    Usage.check("CheckpointsInS3.java FOLDER S3-FOLDER", arguments);
    Path folder = Path.of(arguments[0]);
    DefaultTrainingConfig config = new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss());
    try (CheckpointSaver saver = saver(folder, arguments[1]);
        Model model = Model.newInstance("points")) {
      model.setBlock(Linear.builder().setUnits(10).build());
      try (Trainer trainer = model.newTrainer(config)) {
        trainer.initialize(new Shape(1, 64));
        long step = saver.restoreLatest(model, trainer).map(was -> was.step()).orElse(0L);
        System.out.println("goes on from step " + step);
        // Your training's steps come here.
        var _ = saver.save(step + 100, model, trainer);
      }
      saver.awaitUploads();
      System.out.println("step " + saver.latest().orElseThrow().step() + " is in S3");
    }
  }

  private static CheckpointSaver saver(Path directory, String remote) {
    return CheckpointSaver.builder()
        .setPath(directory)
        .optRemote(remote)
        .optKeepLast(2)
        .optMode(SaveMode.ASYNC)
        .build();
  }
}
