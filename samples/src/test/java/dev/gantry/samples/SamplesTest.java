// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.engine.Engine;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.ResidentFiles;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.samples.datasets.TrainAndValidate;
import dev.gantry.samples.datasets.TrainFromImages;
import dev.gantry.samples.datasets.TrainFromTfRecord;
import dev.gantry.samples.datasets.TrainFromWebDataset;
import dev.gantry.samples.datasets.WriteTfRecord;
import dev.gantry.samples.files.ContinueFromPyTorch;
import dev.gantry.samples.files.LoadGguf;
import dev.gantry.samples.files.LoadPyTorch;
import dev.gantry.samples.files.LoadQuantised;
import dev.gantry.samples.gpus.SeveralGpus;
import dev.gantry.samples.gpus.TrainOnSeveralGpus;
import dev.gantry.samples.remote.CacheRemoteWeights;
import dev.gantry.samples.resident.ServeResident;
import dev.gantry.samples.texts.ChatWithModel;
import dev.gantry.samples.texts.ClassifyTexts;
import dev.gantry.samples.texts.EmbedByCriteria;
import dev.gantry.samples.texts.EmbedTexts;
import dev.gantry.samples.texts.GenerateText;
import dev.gantry.samples.texts.RerankTexts;
import dev.gantry.samples.texts.TrainOnTokens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
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
            SERVER.put("large.safetensors", SampleInputs.largeWeights()),
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
            SampleInputs.image(temporary)),
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
            SampleInputs.pictures(temporary),
            temporary.resolve("decoded")),
        sample(
            "TrainOnTokens",
            TrainOnTokens::main,
            "(perplexity: \\d+[.,]\\d+\n){2}perplexity: 1[.,]\\d+\n",
            SampleInputs.tokens(temporary),
            10),
        sample(
            "TrainFromWebDataset",
            TrainFromWebDataset::main,
            "accuracy: (0\\.[5-9]\\d*|1\\.0)\n",
            SampleInputs.archive(temporary, SampleInputs.pictures(temporary)),
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
