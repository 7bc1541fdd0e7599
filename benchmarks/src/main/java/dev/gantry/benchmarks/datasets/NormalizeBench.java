// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.engine.Engine;
import ai.djl.engine.EngineException;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.io.IOException;

/// Compares two ways to turn images of (height, width, channels) bytes into normalised images of
/// (channels, height, width) in DJL's batches: while the images are read ahead, and by DJL's
/// operations on each batch.
record NormalizeBench(GantrySession session, Samples samples, Transport transport) {
  private static final float[] SCALE = {0.0171f, 0.0175f, 0.0174f};
  private static final float[] SHIFT = {-2.118f, -2.036f, -1.804f};

  /// Measures both ways in turns, or prints that DJL lacks the device.
  void run(Device device, int turns) throws Exception {
    ai.djl.Device target = ai.djl.Device.cpu();
    if (device instanceof Device.Cuda(int ordinal)) {
      target = ai.djl.Device.gpu(ordinal);
      if (gpus() <= ordinal) {
        System.out.printf("DJL's batches, normalised\tno DJL on %s%n", device);
        return;
      }
    }
    Comparison all =
        new Comparison(
                "TFRecord by index, DJL's batches, hot, " + transport + ", single samples",
                samples.bytes() * DatasetBench.EPOCHS)
            .samples(samples.count() * DatasetBench.EPOCHS)
            .before(Turns::pause);
    for (DataType to : new DataType[] {DataType.FLOAT32, DataType.FLOAT16}) {
      all.add(
              contender(
                  to + " by optNormalize",
                  target,
                  builder().optNormalize("image", SCALE, SHIFT, to).optChannelsFirst("image")))
          .add(
              contender(
                  to + " by DJL's operations",
                  target,
                  builder().optTransform(images -> operations(images, to))));
    }
    all.print(turns);
  }

  private static int gpus() {
    try {
      return Engine.getEngine("PyTorch").getGpuCount();
    } catch (EngineException | LinkageError e) {
      System.out.println("no engine of DJL: " + e.getMessage());
      return 0;
    }
  }

  private TfRecordDataset.Builder builder() throws IOException {
    return TfRecordDataset.builder()
        .setPath(samples.indexed())
        .addFeature(FeatureSpec.bytes("image", 224, 224, 3))
        .addFeature(FeatureSpec.int64s("label"))
        .optIndex(IndexUse.REQUIRE)
        .setSampling(samples.batchSize())
        .optShuffle(1)
        .optPrefetch(3)
        .optRepeat(DatasetBench.EPOCHS)
        .optTransport(transport)
        .optSession(session);
  }

  private static NDList operations(NDList images, DataType to) {
    NDArray values = images.singletonOrThrow();
    NDManager manager = values.getManager();
    Shape each = new Shape(1, 3, 1, 1);
    return new NDList(
        values
            .toType(DataType.FLOAT32, true)
            .transpose(0, 3, 1, 2)
            .mul(manager.create(SCALE, each))
            .add(manager.create(SHIFT, each))
            .toType(to, true));
  }

  private Contender contender(String name, ai.djl.Device target, TfRecordDataset.Builder builder) {
    return Contender.of(
        name,
        samples.count() * DatasetBench.EPOCHS,
        () -> {
          long images = 0;
          try (TfRecordDataset dataset = builder.build();
              NDManager manager = NDManager.newBaseManager(target)) {
            for (Batch batch : dataset.getData(manager)) {
              try (batch) {
                images += batch.getSize();
                // Waits for the device's queued work, by reading a value.
                float _ =
                    batch
                        .getData()
                        .singletonOrThrow()
                        .get(0, 1, 5)
                        .toType(DataType.FLOAT32, true)
                        .sum()
                        .getFloat();
              }
            }
          }
          return images;
        });
  }
}
