// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.BlockFactory;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.ParameterStore;
import ai.djl.training.Trainer;
import ai.djl.training.TrainingConfig;
import ai.djl.training.loss.Loss;
import ai.djl.translate.NoopTranslator;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.weights.ResidentFiles;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.testing.Latches;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Arrays over weights that a server keeps in host memory. The tests name all devices, because
/// DJL's default device may be a GPU, to which host memory would be copied.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class ResidentWeightsTest {
  private static final int SIZE = 1000;
  private static final ai.djl.Device CPU = ai.djl.Device.cpu();

  @TempDir private Path folder;
  private Path socket;
  private long memoryFiles;
  private NDManager manager;
  private ResidentServer server;
  private Thread serving;

  @BeforeEach
  void serve() throws IOException {
    memoryFiles = memoryFiles();
    manager = NDManager.newBaseManager(CPU, "PyTorch");
    socket = folder.resolve("sockets/weights.sock");
    server = ResidentServer.listen(socket, _ -> {});
    server.publish(image(1, file("first", 1)));
    serving = Thread.ofPlatform().start(server::run);
  }

  @AfterEach
  void end() throws Exception {
    manager.close();
    server.close();
    serving.join();
    assertThat(memoryFiles()).isEqualTo(memoryFiles);
  }

  private Path file(String name, double first) throws IOException {
    double[] values = new double[SIZE];
    values[0] = first;
    return new WeightsFile()
        .vector("numbers", DType.F32, values)
        .tensor("weight", DType.F32, TensorShape.of(2, 3), 1, 2, 3, 4, 5, 6)
        .vector("bias", DType.F32, first, 0)
        .vector("ones", DType.F32, 1, 1)
        .vector("brief", DType.BF16, 1, 2)
        .vector("odd", DType.U8, 1, 2, 3)
        .vector("none", DType.F32)
        .write(Files.createDirectories(folder.resolve(name)).resolve("model.safetensors"));
  }

  private static ResidentImage image(int version, Path path) {
    GantrySession session = GantrySession.shared();
    ResidentFiles files =
        ResidentFiles.of(session, WeightsFormats.open(GantrySession.shared(), Location.of(path)));
    return session.keepResident(
        version, files.entry(), files.sources(), Device.HOST, TransferOptions.defaults());
  }

  private Weights open() {
    return Weights.open(server.location().toString());
  }

  /// Counts this process's descriptors and mappings of memory files.
  private static long memoryFiles() throws IOException {
    long count = 0;
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      for (Path one : all.toList()) {
        try {
          count += Files.readSymbolicLink(one).toString().contains("gantry-resident") ? 1 : 0;
        } catch (IOException _) {
          // The descriptor was the one that listed the directory.
        }
      }
    }
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      return count + maps.filter(line -> line.contains("gantry-resident")).count();
    }
  }

  private void awaitReaders(Map<Integer, Integer> wanted) {
    Latches.awaitThat(() -> server.readers().equals(wanted));
  }

  @Test
  void arraysLieInTheServersMemoryAndNothingIsRead() throws IOException {
    TransferReportOf report = new TransferReportOf();
    try (Weights weights = open();
        NDList first = weights.load(manager, LoadOptions.builder().optReport(report).build());
        NDList second = weights.load(manager)) {
      assertThat(weights.tensors().keySet()).contains("odd", "numbers", "weight");
      assertThat(first.get("weight").toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
      assertThat(first.get("brief").getDataType()).isEqualTo(DataType.BFLOAT16);
      assertThat(report.bytes).isZero();
      assertThat(NoLeaks.heldBytes()).isZero();
      assertThat(second.get("numbers").getFloat(0)).isEqualTo(1);
    }
    try (Weights file = Weights.open(folder.resolve("first"));
        Weights weights = open();
        NDList expected = file.load(manager);
        NDList lazy = weights.load(manager, LoadOptions.builder().optLazy(true).build());
        NDList cast =
            weights.load(manager, LoadOptions.builder().optCast(DataType.FLOAT64).build())) {
      assertThat(lazy.get("numbers")).isEqualTo(expected.get("numbers"));
      assertThat(cast.get("weight").toDoubleArray()).containsExactly(1, 2, 3, 4, 5, 6);
      // The cast array is a copy, so it can be written.
      cast.get("weight").muli(2);
      NDArray there = manager.zeros(new Shape(2, 3));
      weights.copyTo("weight", there);
      assertThat(there.toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
    }
  }

  private static final class TransferReportOf implements Consumer<dev.gantry.core.TransferReport> {
    private long bytes = -1;

    @Override
    public void accept(dev.gantry.core.TransferReport report) {
      bytes = report.bytes();
    }
  }

  @Test
  void writesAreRefusedAndChangeNothing() {
    try (Weights weights = open();
        NDList list = weights.load(manager);
        NDList other = weights.load(manager)) {
      NDArray array = list.get("weight");
      NDArray view = array.get(0);
      NDArray operand = manager.ones(new Shape(2, 3));
      List<Runnable> writes =
          List.of(
              () -> array.addi(1),
              () -> array.subi(operand),
              () -> array.muli(2),
              () -> array.negi(),
              () -> array.getNDArrayInternal().rsubi(1),
              () -> array.getNDArrayInternal().rdivi(operand),
              () -> array.set(new float[6]),
              () -> array.set(new NDIndex("0,0"), 5),
              () -> array.set(new NDIndex("0"), manager.ones(new Shape(3))),
              () -> array.setScalar(new NDIndex("0,0"), 5),
              () -> operand.copyTo(array),
              () -> other.get("weight").copyTo(array),
              () -> view.addi(1),
              () -> array.reshape(6).muli(3),
              () -> array.transpose().get(1).subi(1),
              () -> array.toType(DataType.FLOAT32, false).addi(1),
              () ->
                  array
                      .getNDArrayInternal()
                      .sgdUpdate(
                          new NDList(array, operand), new NDList(array), 1, 0, 1, 0, 0, false),
              () -> weights.copyTo("weight", array),
              () -> TorchArrays.copy(operand, array, 0),
              () -> TorchArrays.copyInto(operand.get(0), array, new NDIndex("0")),
              () -> list.get("brief").addi(1));
      for (int i = 0; i < writes.size(); i++) {
        Runnable write = writes.get(i);
        assertThatThrownBy(write::run)
            .as("write %d", i)
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining("is read-only");
      }
      assertThat(array.toByteBuffer().isReadOnly()).isTrue();
      assertThat(array.toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
      try (NDArray copy = array.duplicate();
          NDArray sum = array.add(1)) {
        copy.addi(1);
        sum.addi(1);
      }
      // A write that bypasses the guard changes only this process's copy of the page.
      MemorySegment.ofAddress(TorchArrays.address(array))
          .reinterpret(4)
          .set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, 99);
      assertThat(other.get("weight").toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
    }
  }

  @Test
  void aBlockPredictsOverTheServersMemory() throws Exception {
    try (Weights weights = open();
        Model model = Model.newInstance("resident", CPU)) {
      Block block = Linear.builder().setUnits(2).build();
      weights.load(
          model.getNDManager(),
          block,
          ParameterNames.same(),
          LoadOptions.defaults(),
          new Shape(1, 3));
      assertThat(NoLeaks.heldBytes()).isZero();
      model.setBlock(block);
      try (var predictor = model.newPredictor(new NoopTranslator());
          NDManager own = manager.newSubManager()) {
        NDList answer = predictor.predict(new NDList(own.create(new float[][] {{1, 1, 1}})));
        assertThat(answer.singletonOrThrow().toFloatArray()).containsExactly(7, 15);
      }
      LiveWeights live = LiveWeights.of(block);
      assertThatThrownBy(() -> live.refresh(weights, ParameterNames.same(), LoadOptions.defaults()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("is read-only");
      live.close();
    }
  }

  /// Makes a linear block one of whose two parameters is the server's.
  private static Block half(NDManager manager, Weights weights, String held) {
    Block block = Linear.builder().setUnits(2).build();
    LoadReport _ =
        weights.load(
            manager,
            block,
            ParameterNames.builder().rule(held, held).build(),
            LoadOptions.builder().optPartial(true).build(),
            new Shape(1, 3));
    return block;
  }

  private static float[] values(Block block, String parameter) {
    return block.getParameters().get(parameter).getArray().toFloatArray();
  }

  @Test
  void aTrainingsForwardChangesStatisticsOfItsOwn() {
    Block block = BatchNorm.builder().build();
    try (Weights weights = open();
        NDArray ones = manager.ones(new Shape(3, 2));
        NDManager own = manager.newSubManager()) {
      LoadReport _ =
          weights.load(
              manager,
              block,
              ParameterNames.builder()
                  .rule("runningMean", "bias")
                  .rule("runningVar", "ones")
                  .rule("beta", "brief")
                  .build(),
              LoadOptions.builder().optPartial(true).optCast(DataType.FLOAT32).build(),
              new Shape(3, 2));
      // The arrays over the server's memory are closed where copies take their place.
      assertThat(manager.getManagedArrays()).hasSize(1 + block.getParameters().size());
      NDList _ = block.forward(new ParameterStore(own, false), new NDList(ones), true);
      NDArray mean = block.getParameters().get("runningMean").getArray();
      assertThat(mean.addi(0).getFloat(1)).isBetween(0.09f, 0.11f);
      NDArray variance = block.getParameters().get("runningVar").getArray();
      assertThat(variance.addi(0).getFloat(1)).isBetween(0.89f, 0.91f);
    }
  }

  @Test
  void aRefreshIntoReadOnlyArraysIsRefusedBeforeOthersChange() {
    try (Weights weights = open()) {
      Block block = half(manager, weights, "bias");
      float[] before = values(block, "weight");
      LiveWeights live = LiveWeights.of(block);
      assertThatThrownBy(() -> live.refresh(weights, ParameterNames.same(), LoadOptions.defaults()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("'bias' is read-only");
      assertThat(values(block, "weight")).isEqualTo(before);
      live.close();
    }
  }

  @Test
  void aRestoreIntoReadOnlyArraysIsRefusedBeforeOthersChange() throws IOException {
    try (Weights weights = open();
        Model model = Model.newInstance("resident", CPU);
        CheckpointSaver saver =
            CheckpointSaver.builder().setPath(folder.resolve("checkpoints")).build()) {
      Block block = half(model.getNDManager(), weights, "weight");
      block.freezeParameters(true, parameter -> parameter.getName().equals("weight"));
      model.setBlock(block);
      // On a GPU, DJL's trainer would copy its parameters into the model's read-only ones at its
      // end.
      TrainingConfig onCpu =
          new DefaultTrainingConfig(Loss.l2Loss()).optDevices(new ai.djl.Device[] {CPU});
      try (Trainer trainer = model.newTrainer(onCpu)) {
        SaveOutcome _ = saver.save(1, model, trainer).join();
        block.getParameters().get("bias").getArray().addi(2);
        float[] before = values(block, "bias");
        assertThatThrownBy(() -> saver.restoreLatest(model, trainer))
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining("'weight' is read-only");
        assertThat(values(block, "bias")).isEqualTo(before);
      }
    }
  }

  @Test
  void theOldVersionStaysForItsReadersAndGoesWithTheLast() throws IOException {
    try (NDList old = oldVersion()) {
      server.publish(image(2, file("second", 2)));
      try (Weights weights = open();
          NDList list = weights.load(manager)) {
        awaitReaders(Map.of(2, 1));
        assertThat(list.get("numbers").getFloat(0)).isEqualTo(2);
        assertThat(old.get("numbers").getFloat(0)).isEqualTo(1);
      }
      awaitReaders(Map.of());
      server.close();
      assertThat(old.get("numbers").getFloat(0)).isEqualTo(1);
      assertThat(memoryFiles()).isEqualTo(memoryFiles + 1);
    }
    assertThat(memoryFiles()).isEqualTo(memoryFiles);
    assertThatThrownBy(this::open)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("no server of resident weights listens there");
  }

  private NDList oldVersion() {
    try (Weights weights = open()) {
      awaitReaders(Map.of(1, 1));
      return weights.load(manager);
    }
  }

  @Test
  void aHundredClientsLeaveNothingBehind() throws IOException {
    for (int i = 0; i < 100; i++) {
      try (Weights weights = open();
          NDList list = weights.load(manager)) {
        assertThat(list.get("bias").getFloat(0)).isEqualTo(1);
      }
    }
    awaitReaders(Map.of());
    assertThat(memoryFiles()).isEqualTo(memoryFiles + 1);
  }

  @Test
  void onlyTheOwnerCanOpenTheSocketAndOneServerHasIt() throws IOException {
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(socket)))
        .isEqualTo("rw-------");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(socket.getParent())))
        .isEqualTo("rwx------");
    assertThatThrownBy(() -> ResidentServer.listen(socket, _ -> {}))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("--socket must be one where no server listens");
    assertThatThrownBy(() -> ResidentServer.listen(folder.resolve("s".repeat(120)), _ -> {}))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("at most 107 bytes");
    assertThatThrownBy(() -> Weights.open("gantry-resident://host"))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("by their socket's absolute path");
    Weights weights = open();
    weights.close();
    assertThatThrownBy(() -> weights.load(manager)).isInstanceOf(MisuseException.class);
  }

  @Test
  void checksumsAreRefused() {
    LoadOptions verified = LoadOptions.builder().optVerify(true).build();
    try (Weights weights = open()) {
      assertThatThrownBy(() -> weights.load(manager, verified))
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "optVerify must be false for resident weights (was true, of %s): nothing is read;"
                  + " verify the files that their server loads",
              server.location());
    }
  }

  /// The model's folder has all that the block needs except the weights, which come from the
  /// server.
  @ParameterizedTest
  @ValueSource(strings = {"PyTorch", "Gantry"})
  void criteriaTakeThem(String engine) throws Exception {
    Criteria<NDList, NDList> criteria =
        Criteria.builder()
            .setTypes(NDList.class, NDList.class)
            .optModelPath(folder.resolve("first"))
            .optEngine(engine)
            .optDevice(CPU)
            .optOption("hasParameter", "false")
            .optArgument("blockFactory", factory())
            .optTranslator(new NoopTranslator())
            .build();
    try (ZooModel<NDList, NDList> model = criteria.loadModel();
        Predictor<NDList, NDList> predictor = model.newPredictor();
        NDManager own = manager.newSubManager()) {
      assertThat(NoLeaks.heldBytes()).isZero();
      NDList answer = predictor.predict(new NDList(own.create(new float[][] {{1, 1, 1}})));
      assertThat(answer.singletonOrThrow().toFloatArray()).containsExactly(7, 15);
    }
    awaitReaders(Map.of());
  }

  private BlockFactory factory() {
    return (model, _, _) -> {
      Block block = Linear.builder().setUnits(2).build();
      try (Weights weights = open()) {
        weights.load(
            model.getNDManager(),
            block,
            ParameterNames.same(),
            LoadOptions.defaults(),
            new Shape(1, 3));
      }
      // With this property the engine "Gantry" loads no further parameters.
      model.setProperty("hasParameter", "false");
      return block;
    };
  }

  @Test
  void whatIsNotAlignedIsCopied() throws IOException {
    Path file =
        new WeightsFile()
            .vector("first", DType.F32, 7)
            .vector("odd", DType.U8, 1, 2, 3)
            .vector("second", DType.F32, 8)
            .write(folder.resolve("odd.safetensors"));
    server.publish(image(2, file));
    try (Weights weights = open();
        NDList list = weights.load(manager)) {
      assertThat(list.get("first").getFloat(0)).isEqualTo(7);
      assertThat(list.get("second").getFloat(0)).isEqualTo(8);
      list.get("second").addi(1);
    }
  }

  @Test
  void aFolderOfSeveralFilesWithAnIndexIsServedWhole() throws IOException {
    Path parts = Files.createDirectories(folder.resolve("parts"));
    new WeightsFile().vector("a", DType.F32, 1).write(parts.resolve("m-1.safetensors"));
    new WeightsFile().vector("b", DType.F32, 2).write(parts.resolve("m-2.safetensors"));
    Files.writeString(
        parts.resolve("model.safetensors.index.json"),
        """
        {"metadata": {}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}\
        """);
    server.publish(image(2, parts));
    try (Weights weights = open();
        NDList list = weights.load(manager)) {
      assertThat(list.get("a").getFloat(0)).isEqualTo(1);
      assertThat(list.get("b").getFloat(0)).isEqualTo(2);
    }
  }
}
