// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.testing.AllocationSearch;
import dev.gantry.testing.RangeServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.DoubleStream;

/// Lets each kind of worker fail at its first heap allocation, then at its second, and so on:
/// `FOLDER MOST`, where `MOST` bounds the number of allocations of each kind.
final class EveryAllocationProgram {
  private static final int TENSORS = 6;
  private static final int VALUES = 2048;
  private static final int SAMPLES = 64;

  private final Path folder;
  private final RangeServer server = new RangeServer();
  private final NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch");
  private final GantrySession session = GantrySession.open();
  private final Path file;
  private final String served;
  private int number;

  private EveryAllocationProgram(Path folder) throws IOException {
    this.folder = folder;
    WeightsFile written = new WeightsFile();
    for (int i = 0; i < TENSORS; i++) {
      double[] values = DoubleStream.iterate(i, one -> one + 1).limit(VALUES).toArray();
      written.tensor("t" + i, DType.F32, TensorShape.of(VALUES), values);
    }
    file = written.write(folder.resolve("model.safetensors"));
    served = server.put("served.safetensors", Files.readAllBytes(file)).toString();
    Path _ = ImageShards.write(folder.resolve("shards"), SAMPLES, 20);
  }

  public static void main(String[] arguments) throws IOException {
    // Warnings are off, because each save of another training and each failure would log one.
    System.setProperty("org.slf4j.simpleLogger.log.dev.gantry", "off");
    var program = new EveryAllocationProgram(Path.of(arguments[0]));
    int most = Integer.parseInt(arguments[1]);
    Map<String, AllocationSearch.Operation> operations = new LinkedHashMap<>();
    operations.put("gantry-reader-", () -> program.load(program.file.toString(), program.session));
    operations.put("gantry-http-", () -> program.load(program.served, program.session));
    operations.put("gantry-part-", program::loadInParts);
    operations.put("gantry-ring-", program::epoch);
    operations.put("gantry-cache-", program::loadCached);
    operations.put("gantry-snapshot", () -> program.save(SaveMode.OVERLAPPED));
    operations.put("gantry-saver", () -> program.save(SaveMode.ASYNC));
    operations.put("caller loads", () -> program.load(program.file.toString(), program.session));
    operations.put("caller loads remotely", () -> program.load(program.served, program.session));
    operations.put("caller loads in parts", program::loadInParts);
    operations.put("caller reads batches", program::epoch);
    operations.put("caller caches", program::loadCached);
    operations.put("caller saves", () -> program.save(SaveMode.SYNC));
    operations.put("caller saves later", () -> program.save(SaveMode.ASYNC));
    operations.put("caller saves meanwhile", () -> program.save(SaveMode.OVERLAPPED));
    new AllocationSearch(program.session, List::of, most).run(operations);
  }

  private static void require(boolean right, String what) {
    if (!right) {
      throw new IllegalStateException("wrong: " + what);
    }
  }

  private void load(String location, GantrySession own) {
    load(location, own, LoadOptions.defaults());
  }

  private void load(String location, GantrySession own, LoadOptions options) {
    try (Weights weights = Weights.open(location, own);
        NDList list = weights.load(manager, options)) {
      for (int i = 0; i < TENSORS; i++) {
        double[] values =
            Objects.requireNonNull(list.get("t" + i))
                .toType(DataType.FLOAT64, false)
                .toDoubleArray();
        require(values.length == VALUES && values[VALUES - 1] == i + VALUES - 1, "t" + i);
      }
    }
  }

  private void loadInParts() {
    load(
        file.toString(),
        session,
        LoadOptions.builder().slabBytes(2 * 4 * VALUES).optCast(DataType.FLOAT64).build());
  }

  private void epoch() {
    int taken = 0;
    try (ShardDataset dataset =
            ShardDataset.builder()
                .setPath(folder.resolve("shards"))
                .setSampling(8)
                .optSession(session)
                .build();
        NDManager own = manager.newSubManager()) {
      for (Batch batch : dataset.getData(own)) {
        try (batch) {
          taken += batch.getSize();
        }
      }
    }
    require(taken == SAMPLES, taken + " samples");
  }

  private void loadCached() throws IOException {
    String location =
        server.put("cached-" + ++number + ".safetensors", Files.readAllBytes(file)).toString();
    try (GantrySession own = GantrySession.open()) {
      own.cacheRemoteFiles(folder.resolve("cache"), 1 << 20);
      load(location, own);
      load(location, own);
    }
  }

  private void save(SaveMode mode) {
    int step = ++number;
    try (Training training = Fit.training();
        CheckpointSaver saver =
            CheckpointSaver.builder()
                .setPath(folder.resolve("run"))
                .optMode(mode)
                .optSession(session)
                .optKeepLast(2)
                .build()) {
      training.steps(0, 1);
      saver.prepare(training.model, training.trainer).join();
      var saved = saver.save(step, training.model, training.trainer);
      saver.await();
      var _ = saved.join();
      require(saver.latest().orElseThrow().step() == step, "the latest step");
    }
  }
}
