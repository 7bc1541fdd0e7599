// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.ParameterStore;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.PlainState;
import dev.gantry.djl.internal.training.RestoreTarget;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.djl.internal.training.TrainingRestore;
import dev.gantry.djl.internal.training.UserStates;
import dev.gantry.djl.internal.weights.TensorLoad;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Loads into existing arrays need no more additional memory than three slabs: one whose bytes are
/// used and two that are read.
@ExtendWith(NoLeaks.class)
class PartwiseLoadTest {
  private static final long SLAB_BYTES = 64 << 10;

  @TempDir private Path folder;
  private NDManager manager;
  // The files stay in the page cache, because cold files would be read past it into further
  // buffers.
  private final Arena hot = Arena.ofConfined();

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
    LiveResources.forgetMostUsed();
  }

  @AfterEach
  void close() {
    manager.close();
    hot.close();
  }

  /// The file has four layers of 40 KiB, and one layer of 300 KiB, which is loaded row by row.
  @Test
  void aLoadIntoParametersHoldsThreeSlabs() throws IOException {
    Block block = block();
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 100));
    Path file = layers(folder.resolve("model.safetensors"), 1, 5);
    long before = peakBytes();
    try (Weights checkpoint = Weights.open(file)) {
      assertThat(checkpoint.totalBytes()).isGreaterThan(7 * SLAB_BYTES);
      LoadReport report =
          checkpoint.load(manager, block, ParameterNames.same(), observed().build());
      assertThat(report.loaded()).hasSize(5);
    }
    assertThat(peakBytes() - before).isBetween(SLAB_BYTES / 2, 3 * (SLAB_BYTES + edgesBytes()));
    for (var pair : block.getParameters()) {
      int layer = Integer.parseInt(pair.getKey().substring(0, 2));
      assertThat(pair.getValue().getArray().toFloatArray())
          .as(pair.getKey())
          .isEqualTo(values(layer));
    }
  }

  @Test
  void aRestoreIntoATrainingHoldsThreeSlabs() throws IOException {
    PlainState saved;
    try (Training training = training();
        CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      training.steps(0, 2);
      saved = PlainState.of(training.trainer);
      var _ = saver.save(2, training.model, training.trainer);
    }
    try (Training fresh = training()) {
      restore(fresh);
      // The restore also makes the means and variances that the optimizer does not have yet.
      assertThat(PlainState.of(fresh.trainer)).isEqualTo(saved);
      assertThat(peakBytes()).isBetween(1L, 3 * (SLAB_BYTES + edgesBytes()));
      fresh.steps(2, 4);
      restore(fresh);
      assertThat(PlainState.of(fresh.trainer)).isEqualTo(saved);
    }
  }

  /// A device allocates the memory of a part once for each slab.
  @Test
  void aPartOfAsManyBytesAsASlabHasOne() throws IOException {
    WeightsFile written = new WeightsFile();
    for (int i = 0; i < 8; i++) {
      written.raw(
          "t" + i, DType.U8, TensorShape.of(SLAB_BYTES / 4), new byte[(int) SLAB_BYTES / 4]);
    }
    Path file = hot(written.write(folder.resolve("model.safetensors")));
    List<Long> slabs = new ArrayList<>();
    new TensorLoad(GantrySession.shared(), manager, observed().build().settings())
        .eachPart(
            List.copyOf(
                WeightsFormats.open(GantrySession.shared(), Location.of(file)).tensors().values()),
            (_, _, _) -> slabs.add(LiveResources.snapshot().slabs()));
    // No other slab is held when the last part is allocated.
    assertThat(slabs).hasSize(8).last().isEqualTo(1L);
  }

  @Test
  void aFailureBetweenTwoPartsSaysThatTheValuesAreMixed() throws IOException {
    Block block = block();
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 100));
    layers(folder.resolve("1.safetensors"), 1, 3);
    Path second = layers(folder.resolve("2.safetensors"), 4, 5);
    try (Weights checkpoint = Weights.open(folder)) {
      Files.delete(second);
      assertThatThrownBy(
              () -> checkpoint.load(manager, block, ParameterNames.same(), observed().build()))
          .isInstanceOf(TransferException.class)
          .hasMessageContainingAll(
              "2 tensors have been copied", "again before", "2.safetensors", "ENOENT");
      assertThat(block.getParameters().get("01Linear_weight").getArray().toFloatArray())
          .isEqualTo(values(1));
    }
  }

  @Test
  void aTensorThatDiffersFromItsChecksumLaterLeavesTheValuesMixed() throws IOException {
    Block block = block();
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 100));
    Path file = layers(folder.resolve("model.safetensors"), 1, 5);
    var _ = SafetensorsSums.build(GantrySession.shared(), file);
    byte[] bytes = Files.readAllBytes(file);
    bytes[bytes.length - 1] ^= 1;
    Files.write(file, bytes);
    try (Weights weights = Weights.open(file)) {
      LoadOptions options = observed().optVerify(true).build();
      assertThatThrownBy(() -> weights.load(manager, block, ParameterNames.same(), options))
          .isInstanceOf(TransferException.class)
          .hasMessageContainingAll("again before", "checksum-mismatch", "05Linear_weight");
    }
  }

  /// The first part has a slab of its own; no slab is held when the last bytes arrive.
  @Test
  void whatFollowsTheFirstPartIsReadStraightIntoItsArrays() throws IOException {
    Block block = block();
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 100));
    Path file = layers(folder.resolve("model.safetensors"), 1, 5);
    List<Long> held = new ArrayList<>();
    List<Long> done = new ArrayList<>();
    List<Long> reported = new ArrayList<>();
    try (Weights checkpoint = Weights.open(file)) {
      LoadOptions options =
          LoadOptions.builder()
              .slabBytes(SLAB_BYTES)
              .optReport(report -> reported.add(report.bytes()))
              .optProgress((now, total) -> {
                assertThat(total).isIn(0L, checkpoint.totalBytes());
                done.add(now);
                held.add(LiveResources.snapshot().slabs());
              })
              .build();
      var _ = checkpoint.load(manager, block, ParameterNames.same(), options);
      assertThat(done).isSorted().last().isEqualTo(checkpoint.totalBytes());
      assertThat(held).last().isEqualTo(0L);
      // Reads are of whole blocks of the file.
      assertThat(reported)
          .singleElement()
          .satisfies(bytes -> assertThat(bytes).isGreaterThanOrEqualTo(checkpoint.totalBytes()));
    }
  }

  /// Only one array can be read into, and only if it is dense in C order.
  @Test
  void aTensorBehindTheFirstPartFillsAllOfItsArrays() throws IOException {
    Path file = layers(folder.resolve("model.safetensors"), 1, 4);
    ParameterList parameters = new ParameterList();
    for (String name : List.of("1", "2", "3", "again", "4")) {
      Parameter parameter =
          Parameter.builder().setName(name).setType(Parameter.Type.WEIGHT).build();
      NDArray array = manager.zeros(new Shape(100, 100));
      parameter.setArray(name.equals("4") ? array.transpose() : array);
      parameters.add(name, parameter);
    }
    ParameterNames names =
        ParameterNames.builder().rule("{i}", "0{i}Linear_weight").tie("again", "3").build();
    try (Weights checkpoint = Weights.open(file)) {
      var _ = checkpoint.load(manager, parameters, names, observed().build());
    }
    for (String name : List.of("3", "again")) {
      assertThat(parameters.get(name).getArray().toFloatArray()).as(name).isEqualTo(values(3));
    }
    assertThat(parameters.get("4").getArray().toFloatArray()).isEqualTo(values(4));
  }

  @Test
  void aDeviceThatFailsLaterLeavesTheValuesMixed() throws IOException {
    assumeTrue(!manager.getDevice().isGpu(), "loads to a GPU differ in how often they read");
    Block block = block();
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 100));
    Path file = layers(folder.resolve("model.safetensors"), 1, 5);
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    try (GantrySession session = Sessions.over(calls);
        Weights checkpoint = Weights.open(file, session);
        LiveWeights live = LiveWeights.of(block)) {
      LoadOptions options = LoadOptions.builder().slabBytes(SLAB_BYTES).optThreads(1).build();
      int before = calls.count(FaultyFileCalls.Function.PREAD);
      var _ = live.refresh(checkpoint, ParameterNames.same(), options);
      int after = calls.count(FaultyFileCalls.Function.PREAD);

      // The last read of the next refresh fails.
      calls.from(
          FaultyFileCalls.Function.PREAD,
          after + (after - before) - 1,
          new FaultyFileCalls.Fails(Errno.EIO));
      assertThatThrownBy(() -> live.refresh(checkpoint, ParameterNames.same(), options))
          .isInstanceOf(TransferException.class)
          .hasMessageContainingAll("again before", "EIO")
          .cause()
          .isInstanceOf(TransferException.IncompleteRead.class);
      assertThatThrownBy(() ->
              live.block()
                  .forward(
                      new ParameterStore(manager, false),
                      new NDList(manager.ones(new Shape(1, 100))),
                      false))
          .hasMessageContaining("mixed");
    }
  }

  @Test
  void aFailureInTheFirstPartChangesNothing() throws IOException {
    Block block = block();
    block.initialize(manager, DataType.FLOAT32, new Shape(1, 100));
    float[] before = block.getParameters().valueAt(0).getArray().toFloatArray();
    Path file = layers(folder.resolve("1.safetensors"), 1, 5);
    try (Weights checkpoint = Weights.open(file)) {
      Files.delete(file);
      assertThatThrownBy(
              () -> checkpoint.load(manager, block, ParameterNames.same(), observed().build()))
          .isInstanceOf(TransferException.class)
          .hasMessageNotContaining("copied");
    }
    assertThat(block.getParameters().valueAt(0).getArray().toFloatArray()).isEqualTo(before);
  }

  private LoadOptions.Builder observed() {
    return LoadOptions.builder().slabBytes(SLAB_BYTES);
  }

  /// Returns the size of the blocks that are read at both ends of a part, and of a slab's
  /// alignment. A device reserves this space for the largest part, because parts take turns in its
  /// memory.
  private long edgesBytes() {
    return manager.getDevice().isGpu() ? 1 << 20 : 4 * 4096;
  }

  /// Returns the largest size of all slabs at once since the test or its restore began. DJL's own
  /// arrays do not count, and neither does idle memory.
  private static long peakBytes() {
    MemoryUse most = LiveResources.mostUsed();
    return most.hostBytes() + most.deviceBytes();
  }

  private void restore(Training training) throws IOException {
    LiveResources.forgetMostUsed();
    var checkpoint = CheckpointStore.list(GantrySession.shared(), folder).latest().orElseThrow();
    try (Stream<Path> files = Files.walk(checkpoint.folder())) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        var _ = hot(file);
      }
    }
    // The restore computes no checksums, because these need a thread with its own buffers for each
    // processor.
    var _ =
        new TrainingRestore(
                GantrySession.shared(),
                checkpoint,
                false,
                new UserStates(new LinkedHashMap<>()),
                observed().build().settings())
            .into(new RestoreTarget(training.model, training.trainer));
  }

  /// Makes a training with 6 features, whose largest layer is the middle one with 120 KiB.
  private static Training training() {
    Training.seed(1);
    Block block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(160).build())
            .add(Linear.builder().setUnits(192).build())
            .add(Linear.builder().setUnits(3).build());
    return new Training(block, Optimizer.adam().build());
  }

  private static Block block() {
    SequentialBlock block = new SequentialBlock();
    for (int layer = 1; layer <= 5; layer++) {
      block.add(Linear.builder().setUnits(units(layer)).optBias(false).build());
    }
    return block;
  }

  private static int units(int layer) {
    return layer == 5 ? 768 : 100;
  }

  /// Returns the weights of a layer with 100 inputs.
  private static float[] values(int layer) {
    float[] values = new float[units(layer) * 100];
    for (int i = 0; i < values.length; i++) {
      values[i] = layer + i / 1024f;
    }
    return values;
  }

  private Path layers(Path file, int first, int last) throws IOException {
    WeightsFile written = new WeightsFile();
    for (int layer = first; layer <= last; layer++) {
      float[] values = values(layer);
      ByteBuffer bytes =
          ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      bytes.asFloatBuffer().put(values);
      written.raw(
          "0" + layer + "Linear_weight",
          DType.F32,
          TensorShape.of(units(layer), 100),
          bytes.array());
    }
    return hot(written.write(file));
  }

  private Path hot(Path file) throws IOException {
    PageCache.keep(file, 0, Files.size(file), hot);
    return file;
  }
}
