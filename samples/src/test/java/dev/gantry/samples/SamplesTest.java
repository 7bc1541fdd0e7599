// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.translate.TranslateException;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.Weights;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.weights.ResidentFiles;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.samples.datasets.TrainAndValidate;
import dev.gantry.samples.files.ContinueFromPyTorch;
import dev.gantry.samples.files.LoadGguf;
import dev.gantry.samples.files.LoadQuantised;
import dev.gantry.samples.gpus.SeveralGpus;
import dev.gantry.samples.gpus.TrainOnSeveralGpus;
import dev.gantry.samples.remote.CacheRemoteWeights;
import dev.gantry.samples.resident.ServeResident;
import dev.gantry.samples.texts.ClassifyTexts;
import dev.gantry.samples.texts.EmbedByCriteria;
import dev.gantry.samples.texts.EmbedTexts;
import dev.gantry.samples.texts.RerankTexts;
import dev.gantry.samples.texts.TrainOnTokens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.imageio.ImageIO;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Each sample runs as its comment says.
class SamplesTest {
  /// `S3Test` runs them, which has an S3 server.
  private static final Set<String> RUN_BY_CLI = Set.of("ReadFromS3", "CheckpointsInS3");

  private static final Set<String> NO_PROGRAMS = Set.of("package-info", "NumberServer", "Usage");

  private static final Path SOURCES = Path.of("src", "main", "java", "dev", "gantry", "samples");
  private static final Path HUB = Path.of("..", "models", "src", "test", "resources", "hub");
  private static final Path TEXTS = HUB.resolveSibling("texts");
  private static final Path MODEL = Path.of("src", "main", "resources", "model");

  private static final RangeServer SERVER = new RangeServer();

  @BeforeAll
  static void serveTheModel() throws IOException {
    try (Stream<Path> files = Files.list(MODEL)) {
      for (Path file : files.toList()) {
        SERVER.put(file.getFileName().toString(), Files.readAllBytes(file));
      }
    }
  }

  @AfterAll
  static void closeTheServer() {
    SERVER.close();
  }

  /// One folder for all runs, since some read what others wrote.
  @TempDir private static Path temporary;

  /// Takes arguments; those after the second are of the program.
  interface Program {
    void main(String... arguments) throws Exception;
  }

  /// Weights of more blocks than their header brings into a cache.
  private static byte[] largeWeights() {
    int bytes = 3 << 20;
    String header =
        "{\"large\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}"
            .formatted(bytes, bytes);
    return ByteBuffer.allocate(Long.BYTES + header.length() + bytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(header.length())
        .put(header.getBytes(StandardCharsets.US_ASCII))
        .array();
  }

  private static Arguments sample(String name, Program program, String output, Object... values) {
    return Arguments.of(name, program, output, Stream.of(values).map(Object::toString).toArray());
  }

  /// In an order in which what one reads was written before.
  static List<Arguments> samples() {
    Path shards = temporary.resolve("shards");
    Path records = temporary.resolve("records");
    Path checkpoints = temporary.resolve("checkpoints");
    Path images = temporary.resolve("images");
    return List.of(
        sample("LoadWeights", LoadWeights::main, "(?s).*fc1.bias float32 \\(96\\).*", MODEL),
        sample(
            "LoadPyTorch",
            LoadPyTorch::main,
            "(?s).*epoch = 3\n.*model.0.weight float32 \\(8, 4\\).*",
            Path.of("..", "formats", "src", "test", "resources", "corpus", "torch", "training.pt"),
            temporary.resolve("of-pytorch.safetensors")),
        sample(
            "LoadGguf",
            LoadGguf::main,
            "(?s)architecture: llama\n.*"
                + "model.layers.0.self_attn.q_proj.weight bfloat16 \\(64, 64\\).*",
            Path.of("..", "models", "src", "test", "resources", "gguf", "q4_0.gguf")),
        sample(
            "LoadQuantised",
            LoadQuantised::main,
            "(?s).*model.layers.0.mlp.up_proj.weight bfloat16 \\(\\d+, \\d+\\).*",
            Path.of("..", "formats", "src", "test", "resources", "corpus", "quantised")
                .resolve("awq-gemm-g32")),
        sample(
            "ContinueFromPyTorch",
            ContinueFromPyTorch::main,
            "epochs: 3\n",
            Path.of("..", "loader-djl", "src", "test", "resources", "dcp-training", "saved"),
            temporary.resolve("for-pytorch")),
        sample(
            "SeveralGpus",
            SeveralGpus::main,
            "(?s)(\\d+ arrays on .*)+(fc\\d\\.\\w+ \\(.*\\)\n)+\\d+ arrays of rank 0\n",
            MODEL),
        sample(
            "ShareTensors",
            ShareTensors::main,
            "fc1.bias has the mean -?0\\.\\d+(E-\\d)?\n",
            MODEL,
            "fc1.bias"),
        sample(
            "FillMemory",
            FillMemory::main,
            """
            the sum is -?\\d.*
            the first value is -?\\d.*
            the copy is the same: true
            """,
            MODEL,
            "fc1.bias",
            temporary.resolve("exchanged")),
        sample(
            "CacheRemoteWeights",
            CacheRemoteWeights::main,
            """
            0 of 1 files from the cache
            1 arrays
            1 of 1 files from the cache
            1 arrays
            """,
            SERVER.put("large.safetensors", largeWeights()),
            temporary.resolve("cache")),
        sample("TuneCuFile", TuneCuFile::main, "\\d+ arrays in \\d+ requests, .*host.*\n", MODEL),
        sample(
            "RunOnnx",
            RunOnnx::main,
            "the logits of a blank image: \\[.*, .*]\n",
            MODEL.resolveSibling("digits.onnx"),
            MODEL),
        sample("ServeModel", ServeModel::main, "the logits of a blank image: \\[.*, .*]\n", MODEL),
        sample("ServeByCriteria", ServeByCriteria::main, "a blank.* like \\[\\d, \\d]\n", MODEL),
        sample("FineTune", FineTune::main, "(?s).*not in the file: \\[05Linear_[^.]*head.*", MODEL),
        sample(
            "LoadBertBlock",
            LoadBertBlock::main,
            "(?s).*poolingProjection_bias: pooler.dense.bias.*",
            HUB.resolve("bert")),
        sample("GenerateText", GenerateText::main, "the cat .*\n", HUB.resolve("llama"), "the cat"),
        sample(
            "ChatWithModel",
            ChatWithModel::main,
            "(.*\n){2}",
            HUB.resolve("llama"),
            "the cat",
            "a dog"),
        sample(
            "EmbedTexts",
            EmbedTexts::main,
            "1\\.0000 the cat\n-?0\\.\\d+ a dog\n",
            TEXTS.resolve("mean"),
            "the cat",
            "a dog"),
        sample(
            "EmbedByCriteria",
            EmbedByCriteria::main,
            "(\\[.*]\n){2}",
            HUB.resolve("bert"),
            "the cat",
            "a dog saw the cat"),
        sample(
            "RerankTexts",
            RerankTexts::main,
            "(0\\.\\d+ (the cat|a dog)\n){2}",
            TEXTS.resolve("cross"),
            "what is a dog",
            "the cat",
            "a dog"),
        sample(
            "ClassifyTexts",
            ClassifyTexts::main,
            "((bad|fine|good) 0\\.\\d+ (the cat|a dog)\n){2}",
            TEXTS.resolve("classes"),
            "the cat",
            "a dog"),
        sample(
            "ClassifyImage",
            ClassifyImage::main,
            "(LABEL_\\d+ 0\\.\\d+\n){3}",
            HUB.resolve("vit"),
            image()),
        sample(
            "WriteWeights", WriteWeights::main, "wrote .*\n", temporary.resolve("new.safetensors")),
        sample("WriteShards", WriteShards::main, "2000 samples in 4 files: .*\n", shards),
        sample(
            "TrainFromShards", TrainFromShards::main, "accuracy: (0\\.[89]\\d*|1\\.0)\n", shards),
        sample(
            "TrainAndValidate",
            TrainAndValidate::main,
            "(?s)\\d+ samples, and \\d+\n.*accuracy: (0\\.[89]\\d*|1\\.0)\n",
            shards),
        sample(
            "TrainFromImages",
            TrainFromImages::main,
            "40 pictures of 2 classes\naccuracy: (0\\.[89]\\d*|1\\.0)\n",
            pictures(),
            temporary.resolve("decoded")),
        sample(
            "TrainOnTokens",
            TrainOnTokens::main,
            "(perplexity: \\d+[.,]\\d+\n){2}perplexity: 1[.,]\\d+\n",
            tokens(),
            10),
        sample(
            "TrainFromWebDataset",
            TrainFromWebDataset::main,
            "accuracy: (0\\.[5-9]\\d*|1\\.0)\n",
            archive(pictures()),
            2),
        sample(
            "TrainOnSeveralGpus",
            TrainOnSeveralGpus::main,
            "began on \\d+ devices\n",
            shards,
            temporary.resolve("several")),
        sample(
            "TrainOnSeveralGpus",
            TrainOnSeveralGpus::main,
            "went on on \\d+ devices\n",
            shards,
            temporary.resolve("several")),
        sample("WriteTfRecord", WriteTfRecord::main, "(.*/train-0000.-of-00004\n){4}", records),
        sample(
            "TrainFromTfRecord",
            TrainFromTfRecord::main,
            "accuracy: (0\\.[89]\\d*|1\\.0)\n",
            records),
        sample("SaveAndResume", SaveAndResume::main, "step 8\nstep 16\n", checkpoints, 2),
        sample("SaveAndResume", SaveAndResume::main, "step 8\nstep 16\nstep 24\n", checkpoints, 3),
        sample(
            "OverlapSaves",
            OverlapSaves::main,
            "step 4\nstep 8\n",
            temporary.resolve("overlapped")),
        sample("FollowTraining", FollowTraining::main, "(.* has the mean .*\n){2}", checkpoints, 2),
        sample(
            "ServeResident",
            ServeResident::main,
            """
            reading .*: .*no server of resident weights listens there.*
            a blank image looks like \\d: \\d+ ms
            serving http:.*
            """,
            "gantry-resident://" + temporary.resolve("none.sock"),
            MODEL,
            0,
            0),
        sample("RefreshServer", RefreshServer::main, "serving http:.*\n", checkpoints, 0, 1),
        sample(
            "ExportModel",
            ExportModel::main,
            "wrote .*\n",
            checkpoints,
            temporary.resolve("exported")),
        sample(
            "NewHead",
            NewHead::main,
            """
            from step 8
            02Linear_weight: it has shape \\[2, 32], and the checkpoint's has \\[10, 32]
            02Linear_bias: it has shape \\[2], and the checkpoint's has \\[10]
            """,
            temporary.resolve("ten")),
        sample("ResumeMidEpoch", ResumeMidEpoch::main, "(step (40|60|63)\n){3}", shards, images, 1),
        sample(
            "ResumeMidEpoch",
            ResumeMidEpoch::main,
            "(step (100|120|126)\n){3}",
            shards,
            images,
            2));
  }

  @Test
  void photographsAreNormalised() {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, TensorShape.of(2, 4, 3)),
            new Field("label", DType.I64, TensorShape.of()));
    Path folder = temporary.resolve("photographs");
    byte[] image = new byte[24];
    Arrays.fill(image, (byte) 255);
    try (ShardWriter writer = ShardWriter.create(folder, fields, ShardOptions.defaults())) {
      writer.append(
          Map.of(
              "image", MemorySegment.ofArray(image),
              "label", MemorySegment.ofArray(new long[1])));
      var _ = writer.finish();
    }
    try (ShardDataset dataset = TrainFromShards.photographs(folder);
        NDManager manager = NDManager.newBaseManager();
        Batch batch = dataset.getData(manager).iterator().next()) {
      NDArray data = batch.getData().singletonOrThrow();
      assertThat(data.getShape()).isEqualTo(new Shape(1, 3, 2, 4));
      assertThat(data.getDataType()).isEqualTo(DataType.FLOAT16);
      float[] values = data.toType(DataType.FLOAT32, true).toFloatArray();
      assertThat(values[0]).isCloseTo((1 - 0.485f) / 0.229f, Offset.offset(1e-3f));
      assertThat(values[23]).isCloseTo((1 - 0.406f) / 0.225f, Offset.offset(1e-3f));
    }
  }

  private static Path image() {
    BufferedImage image = new BufferedImage(40, 30, BufferedImage.TYPE_INT_RGB);
    image.setRGB(20, 15, 0xff8800);
    Path file = temporary.resolve("image.png");
    try {
      ImageIO.write(image, "png", file.toFile());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return file;
  }

  /// Reddish pictures of one class and bluish ones of another.
  private static Path pictures() {
    Path root = temporary.resolve("pictures");
    try {
      for (int i = 0; i < 40; i++) {
        BufferedImage image = new BufferedImage(40 + i, 60, BufferedImage.TYPE_INT_RGB);
        Graphics2D graphics = image.createGraphics();
        graphics.setColor(i % 2 == 0 ? new Color(200, 3 * i, 20) : new Color(20, 3 * i, 200));
        graphics.fillRect(i / 2, i / 2, 30, 40);
        graphics.dispose();
        Path folder = Files.createDirectories(root.resolve(i % 2 == 0 ? "red" : "blue"));
        String format = i % 4 < 2 ? "jpg" : "png";
        ImageIO.write(image, format, folder.resolve(i + "." + format).toFile());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return root;
  }

  /// Blocks in which each token is one more than the token before it.
  private static Path tokens() {
    Path folder = temporary.resolve("tokens");
    if (Files.exists(folder)) {
      return folder;
    }
    Field field = new Field("tokens", DType.I32, TensorShape.of(33));
    try (ShardWriter writer = ShardWriter.create(folder, List.of(field), ShardOptions.defaults())) {
      for (int i = 0; i < 100; i++) {
        int first = i;
        int[] block = IntStream.range(0, 33).map(j -> (first + j) % 10).toArray();
        writer.append(Map.of("tokens", MemorySegment.ofArray(block)));
      }
      var _ = writer.finish();
    }
    return folder;
  }

  /// The pictures as samples, with their classes.
  private static Path archive(Path pictures) {
    Path archive = temporary.resolve("pictures.tar");
    try (Stream<Path> files = Files.walk(pictures);
        TarArchiveOutputStream tar = new TarArchiveOutputStream(Files.newOutputStream(archive))) {
      for (Path file : files.filter(Files::isRegularFile).sorted().toList()) {
        String name = file.getFileName().toString();
        add(tar, name, Files.readAllBytes(file));
        String label = file.getParent().endsWith("red") ? "1" : "0";
        add(tar, name.replaceFirst("\\..*", ".cls"), label.getBytes(StandardCharsets.UTF_8));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return archive;
  }

  private static void add(TarArchiveOutputStream tar, String name, byte[] data) throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name);
    entry.setSize(data.length);
    tar.putArchiveEntry(entry);
    tar.write(data);
    tar.closeArchiveEntry();
  }

  @AfterEach
  void nothingIsLeft() {
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  void samples(String name, Program program, String output, Object[] arguments) throws Exception {
    String[] words = Stream.of(arguments).map(Object::toString).toArray(String[]::new);
    // Else the first weights of a network are now and then such that it learns too slowly.
    Engine.getInstance().setRandomSeed(1);
    assertThat(outputOf(program, words)).as(name).matches(output);
  }

  /// The line that its comment shows.
  @ParameterizedTest(name = "{0}")
  @MethodSource("samples")
  void withoutArgumentsItSaysItsUsage(String name, Program program) throws IOException {
    try (Stream<Path> files = Files.walk(SOURCES)) {
      Path source = files.filter(file -> file.endsWith(name + ".java")).findFirst().orElseThrow();
      assertThatThrownBy(program::main)
          .isInstanceOfSatisfying(
              MisuseException.class,
              e -> {
                assertThat(e).hasMessageStartingWith("usage: " + name + ".java ");
                assertThat(source)
                    .content()
                    .contains(e.getMessage().replace("usage:", "'") + "\n///");
              });
    }
  }

  @Test
  void aServerStartsOnResidentWeights() throws Exception {
    Path socket = temporary.resolve("sockets/digits.sock");
    GantrySession session = GantrySession.shared();
    ResidentFiles files =
        ResidentFiles.of(session, WeightsFormats.open(GantrySession.shared(), Location.of(MODEL)));
    try (ResidentServer server = ResidentServer.listen(socket, _ -> {})) {
      server.publish(
          session.keepResident(
              1, files.entry(), files.sources(), Device.HOST, TransferOptions.defaults()));
      Thread.ofPlatform().daemon().start(server::run);
      String location = server.location().toString();
      assertThat(outputOf(ServeResident::main, location, MODEL.toString(), "0", "0"))
          .matches("a blank image looks like \\d: \\d+ ms\nserving http:.*\n");
    }
  }

  @Test
  void eachSampleIsRun() throws IOException {
    Set<String> run =
        samples().stream().map(each -> (String) each.get()[0]).collect(Collectors.toSet());
    try (Stream<Path> files = Files.walk(SOURCES).filter(Files::isRegularFile)) {
      assertThat(
              files
                  // `gantry demo` runs these, and so does DemoCommandTest.
                  .filter(file -> !file.getParent().endsWith("demo"))
                  .map(file -> file.getFileName().toString().replace(".java", "")))
          .filteredOn(name -> !NO_PROGRAMS.contains(name))
          .filteredOn(name -> !RUN_BY_CLI.contains(name))
          .containsExactlyInAnyOrderElementsOf(run);
    }
  }

  /// One small step away from the loaded weights, not from random ones.
  @Test
  void fineTuningBeginsAtTheLoadedWeights() throws IOException, TranslateException {
    try (Model model = Model.newInstance("parity");
        NDManager manager = NDManager.newBaseManager()) {
      model.setBlock(FineTune.block());
      ArrayDataset oneBatch =
          new ArrayDataset.Builder()
              .setData(manager.ones(new Shape(4, 64)))
              .optLabels(manager.zeros(new Shape(4), DataType.INT64))
              .setSampling(4, false)
              .build();

      LoadReport report = FineTune.train(model, MODEL, oneBatch);

      assertThat(report.unexpected())
          .containsExactlyInAnyOrder("head.weight", "head.bias", "steps_trained");
      try (Weights weights = Weights.open(MODEL);
          NDArray after = model.getBlock().getParameters().get("01Linear_bias").getArray();
          NDArray before =
              weights.load(manager).stream()
                  .filter(array -> array.getName().equals("fc1.bias"))
                  .findFirst()
                  .orElseThrow()) {
        float step = after.sub(before).abs().max().getFloat();
        assertThat(step).isGreaterThan(0).isLessThan(0.1f);
      }
    }
  }

  @Test
  void onnxRuntimeAnswersAsDjlDoes() throws Exception {
    float[][] question = new float[1][64];
    for (int i = 0; i < 64; i++) {
      question[0][i] = i % 17;
    }
    assertThat(RunOnnx.answer(MODEL.resolveSibling("digits.onnx"), MODEL, question))
        .containsExactly(ServeModel.answer(MODEL, question), Offset.offset(1e-3f));
  }

  private static String outputOf(Program program, String... arguments) throws Exception {
    PrintStream standard = System.out;
    ByteArrayOutputStream output = new ByteArrayOutputStream();
    System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
    try {
      program.main(arguments);
    } finally {
      System.setOut(standard);
    }
    return output.toString(StandardCharsets.UTF_8);
  }
}
