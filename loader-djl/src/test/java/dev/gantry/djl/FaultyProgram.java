// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.weights.ResidentFiles;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.stub.FaultLoop;
import dev.gantry.testing.stub.FaultyLibc;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.stream.DoubleStream;
import java.util.stream.LongStream;

/// Loads, batches, saves, remote reads and resident weights whose system calls fail. For a JVM
/// with [FaultyLibc].
final class FaultyProgram implements AutoCloseable {
  private static final int VALUES = 20_000;
  private static final int SAMPLES = 64;
  private static final Device CPU = Device.cpu();

  private final Path folder;
  private final Path file;
  private final Path shards;
  private final List<Path> records;
  private final RangeServer http = new RangeServer();
  private final byte[] content;
  private final ResidentServer resident;
  private final NDManager manager = NDManager.newBaseManager(CPU, "PyTorch");
  private final float[] values = new float[VALUES];
  private int saved;
  private int served;

  private FaultyProgram(Path folder) throws IOException {
    this.folder = folder;
    double[] doubles = DoubleStream.iterate(0, value -> value + 1).limit(VALUES).toArray();
    for (int i = 0; i < VALUES; i++) {
      values[i] = (float) doubles[i];
    }
    file =
        new WeightsFile()
            .vector("odd", DType.U8, 1, 2, 3)
            .tensor("rows", DType.F32, TensorShape.of(4, VALUES / 4), doubles)
            .vector("last", DType.BF16, 1, 2)
            .write(folder.resolve("model.safetensors"));
    shards = ImageShards.write(folder.resolve("shards"), SAMPLES, 20);
    records =
        ImageRecords.write(
            Files.createDirectory(folder.resolve("records")), SAMPLES, 2, Compression.NONE);
    content = Files.readAllBytes(file);
    resident = ResidentServer.listen(folder.resolve("s/weights.sock"), _ -> {});
    resident.publish(image());
    Thread _ = Thread.ofPlatform().daemon().start(resident::run);
  }

  private ResidentImage image() {
    GantrySession session = GantrySession.shared();
    ResidentFiles files =
        ResidentFiles.of(session, WeightsFormats.open(session, Location.of(file)));
    return session.keepResident(
        1, files.entry(), files.sources(), dev.gantry.core.Device.HOST, TransferOptions.defaults());
  }

  /// @param arguments the folder for the faults, the seed, and the number of faults to inject
  public static void main(String[] arguments) throws Exception {
    // Warnings are off: each fault of the disk and each save without a predecessor would log one,
    // thousands of lines in all.
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    Path folder = Path.of(arguments[0]);
    try (FaultyProgram program = new FaultyProgram(folder)) {
      new FaultLoop(FaultyLibc.preloaded())
          .with("load", program::load)
          .with("slice", program::slice)
          .with("copyTo", program::copyTo)
          .with("lazy load", program::loadLazily)
          .with("shards", program::readShards)
          .with("TFRecord", program::readRecords)
          .with("resident", program::loadResident)
          .with("save", program::save)
          .with("asynchronous save", program::saveBehind)
          .with("cached", program::loadCached)
          .run(Long.parseLong(arguments[1]), Long.parseLong(arguments[2]));
    }
  }

  private void check(NDList list) {
    assertThat(list.get("odd").toByteArray()).containsExactly(1, 2, 3);
    assertThat(list.get("rows").toFloatArray()).isEqualTo(values);
  }

  private void load() {
    try (Weights weights = Weights.open(file);
        NDList list = weights.load(manager, LoadOptions.builder().optRequestBytes(8192).build())) {
      check(list);
    }
  }

  private void slice() {
    LoadOptions options =
        LoadOptions.builder()
            .optSlices(TensorSelection.slices().along("rows", 1).build(), 1, 4)
            .build();
    try (Weights weights = Weights.open(file);
        NDList list = weights.load(manager, options)) {
      float[] part = list.get("rows").toFloatArray();
      int columns = VALUES / 16;
      for (int i = 0; i < part.length; i++) {
        assertThat(part[i]).isEqualTo(i / columns * (VALUES / 4) + columns + i % columns);
      }
    }
  }

  private void copyTo() {
    try (Weights weights = Weights.open(file);
        NDArray there = manager.zeros(new Shape(4, VALUES / 4))) {
      weights.copyTo(Map.of("rows", there));
      assertThat(there.toFloatArray()).isEqualTo(values);
    }
  }

  private void loadLazily() {
    try (Weights weights = Weights.open(file);
        NDList list = weights.load(manager, Machine.loadOptions(true).build())) {
      check(list);
    }
  }

  private void readShards() {
    try (ShardDataset dataset =
        ShardDataset.builder().setPath(shards).setSampling(8).optPoison(true).build()) {
      checkBatches(dataset);
    }
  }

  private void readRecords() {
    try (TfRecordDataset dataset =
        TfRecordDataset.builder()
            .setPath(records)
            .addFeature(FeatureSpec.bytes("image", 3, 5))
            .addFeature(FeatureSpec.int64s("label"))
            .setSampling(8)
            .optPoison(true)
            .build()) {
      checkBatches(dataset);
    }
  }

  private void checkBatches(GantryDataset dataset) {
    List<Long> all = new ArrayList<>();
    try (NDManager own = manager.newSubManager()) {
      for (Batch batch : dataset.getData(own)) {
        try (batch) {
          byte[] images = batch.getData().get("image").toByteArray();
          long[] labels = batch.getLabels().singletonOrThrow().toLongArray();
          for (int i = 0; i < images.length; i++) {
            int place = i % ImageShards.IMAGE_BYTES;
            assertThat(images[i])
                .isEqualTo(ImageShards.pixel(labels[i / ImageShards.IMAGE_BYTES], place));
          }
          LongStream.of(labels).forEach(all::add);
        }
      }
    }
    assertThat(all).isEqualTo(LongStream.range(0, SAMPLES).boxed().toList());
  }

  private void loadResident() {
    try (Weights weights = Weights.open(resident.location().toString());
        NDList list = weights.load(manager)) {
      check(list);
    }
  }

  private void save() {
    save(SaveMode.SYNC);
  }

  private void saveBehind() {
    save(SaveMode.ASYNC);
  }

  /// Saves values that no other save has. Even after a failed save, all checkpoints that the
  /// folder lists are complete.
  private void save(SaveMode mode) {
    int step = ++saved;
    ParametersBlock block = new ParametersBlock();
    try (Model model = Model.newInstance("saved", CPU, "PyTorch")) {
      block.with("a", model.getNDManager().full(new Shape(3000), step, DataType.FLOAT32));
      block.with("b", model.getNDManager().full(new Shape(2, 2), -step, DataType.FLOAT32));
      model.setBlock(block);
      try (CheckpointSaver saver =
          CheckpointSaver.builder()
              .setPath(folder.resolve("checkpoints"))
              .optKeepLast(2)
              .optMode(mode)
              .build()) {
        var outcome = saver.save(SaveRequest.builder().setStep(step).setModel(model).build());
        try {
          var _ = outcome.join();
        } catch (CompletionException e) {
          // The saver throws the failure from its next call, too.
          saver.await();
          throw e;
        }
        for (StoredCheckpoint one : saver.list()) {
          var _ = saver.restore(one.step(), model, null);
          for (var parameter : block.getParameters()) {
            int sign = parameter.getKey().endsWith("a") ? 1 : -1;
            assertThat(parameter.getValue().getArray().toFloatArray())
                .containsOnly((float) (sign * one.step()));
          }
        }
        assertThat(saver.latest().orElseThrow().step()).isEqualTo(step);
      }
    }
  }

  /// Loads a file that no load has read yet, first through the cache and then from it. Each call
  /// opens its own session, because a session stops using a cache whose disk fails.
  private void loadCached() {
    String name = "served-" + ++served % 50 + ".safetensors";
    String location = http.put(name, content).toString();
    try (GantrySession caching = GantrySession.open()) {
      caching.cacheRemoteFiles(folder.resolve("cache"), 1 << 20);
      for (int i = 0; i < 2; i++) {
        try (Weights weights = Weights.open(location, caching);
            NDList list = weights.load(manager)) {
          check(list);
        }
      }
    }
  }

  @Override
  public void close() {
    manager.close();
    resident.close();
    http.close();
  }
}
