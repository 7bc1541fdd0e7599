// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.datasets;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Blocks;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.ShardDataset;
import dev.gantry.formats.Field;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// Trains a network from a folder of JPEG and PNG pictures, a folder for each class: decodes them once, to raw
/// tensor shards, and reads these in each epoch.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TrainFromImages.java PICTURES SHARDS
/// ```
public final class TrainFromImages {
  private static final int EPOCHS = 3;
  private static final int SIDE = 64;

  private TrainFromImages() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("TrainFromImages.java PICTURES SHARDS", arguments);
    Path pictures = Path.of(arguments[0]);
    Path shards = Path.of(arguments[1]);
    List<Path> classes = children(pictures);
    try (Stream<Path> files = Files.walk(pictures)) {
      List<Path> all = files.filter(Files::isRegularFile).sorted().toList();
      ShardSet set = decode(all, classes, shards);
      System.out.println(set.samples() + " pictures of " + classes.size() + " classes");
    }
    try (ShardDataset train = batches(shards);
        Model model = Model.newInstance("images")) {
      model.setBlock(block(classes.size()));
      System.out.println("accuracy: " + train(model, train));
    }
  }

  /// Does what `./gantry convert --size 64 PICTURES SHARDS` does, on one thread.
  private static ShardSet decode(List<Path> pictures, List<Path> classes, Path shards)
      throws IOException {
    ImageDecoding decoding = ImageDecoding.of(SIDE, SIDE);
    Field image = decoding.field("image");
    List<Field> fields = List.of(image, new Field("label", DType.I64, TensorShape.of()));
    try (ShardWriter writer = ShardWriter.create(shards, fields, ShardOptions.defaults())) {
      for (Path picture : pictures) {
        try (Arena arena = Arena.ofConfined()) {
          MemorySegment pixels = arena.allocate(image.sampleBytes());
          byte[] bytes = Files.readAllBytes(picture);
          MemorySegment encoded = arena.allocate(bytes.length);
          encoded.copyFrom(MemorySegment.ofArray(bytes));
          decoding.decode(encoded, pixels, 0);
          long[] label = {classes.indexOf(picture.getParent())};
          writer.append(Map.of("image", pixels, "label", MemorySegment.ofArray(label)));
        }
      }
      return writer.finish();
    }
  }

  /// Batches of (3, height, width) numbers from 0 to 1, in random order.
  private static ShardDataset batches(Path shards) {
    return ShardDataset.builder()
        .setPath(shards)
        .setSampling(8)
        .optShuffle(42)
        .optNormalize("image", 1 / 255f, 0)
        .optChannelsFirst("image")
        .build();
  }

  private static Block block(int classes) {
    return new SequentialBlock()
        .add(
            Conv2d.builder()
                .setFilters(8)
                .setKernelShape(new Shape(8, 8))
                .optStride(new Shape(8, 8))
                .build())
        .add(Activation.reluBlock())
        .add(Blocks.batchFlattenBlock())
        .add(Linear.builder().setUnits(classes).build());
  }

  /// @return the accuracy in the last epoch
  private static float train(Model model, ShardDataset train)
      throws IOException, TranslateException {
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
            .optOptimizer(Adam.builder().build())
            .addEvaluator(new Accuracy())
            .addTrainingListeners(new EvaluatorTrainingListener());
    try (Trainer trainer = model.newTrainer(config)) {
      trainer.initialize(new Shape(1, 3, SIDE, SIDE));
      EasyTrain.fit(trainer, EPOCHS, train, null);
      return trainer.getTrainingResult().getTrainEvaluation("Accuracy");
    }
  }

  private static List<Path> children(Path folder) throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.sorted().toList();
    }
  }
}
