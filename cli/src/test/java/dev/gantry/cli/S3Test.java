// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDManager;
import ai.djl.translate.TranslateException;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.Checkpoints;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.Weights;
import dev.gantry.formats.Field;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.samples.remote.CheckpointsInS3;
import dev.gantry.samples.remote.ReadFromS3;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs commands on objects of an S3 server. Their results for the corpora must equal those of
/// the reference implementations for the local files.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class S3Test {
  private static final Path CORPUS = Path.of("..", "formats", "src", "test", "resources", "corpus");
  private static final S3Server SERVER = S3Server.ofProcess();

  @BeforeAll
  static void upload() throws IOException {
    for (String folder : List.of("safetensors", "numpy", "model", "tfrecord")) {
      upload(CORPUS.resolve(folder), folder);
    }
  }

  private static void upload(Path folder, String name) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        Location _ = SERVER.put(name + "/" + file.getFileName(), Files.readAllBytes(file));
      }
    }
  }

  static Stream<?> valid() {
    return CorpusTest.valid();
  }

  static Stream<?> invalid() {
    return CorpusTest.invalid();
  }

  private static Object tensorsOf(Object file) {
    return TestSamples.json(TestSamples.run("digest", "--json", "--device", "host", file))
        .get("tensors");
  }

  @ParameterizedTest
  @MethodSource("valid")
  void digestAgreesWithTheReference(String file) {
    Map<?, ?> verdict = (Map<?, ?>) JsonTree.verdicts(CORPUS.resolve("safetensors")).get(file);
    assertThat(tensorsOf(S3Server.location("safetensors/" + file)))
        .isEqualTo(verdict.get("tensors"));
  }

  @ParameterizedTest
  @MethodSource("invalid")
  void malformedObjectsAreNamedInOneLine(String file) {
    Location object = S3Server.location("safetensors/" + file);
    CommandLineRun run = TestSamples.fail(65, "digest", object);
    assertThat(run.err()).startsWith("gantry: " + object + ": offset ").hasLineCount(1);
  }

  @Test
  void aFolderOpensByItsName() {
    Object expected = tensorsOf(CORPUS.resolve("model"));
    assertThat(tensorsOf("s3://bucket/model/")).isEqualTo(expected);
    assertThat(tensorsOf("s3://bucket/model")).isEqualTo(expected);
    assertThat(tensorsOf("s3://bucket/model/model.safetensors.index.json")).isEqualTo(expected);
  }

  @Test
  void numpyComesByRangesToo() {
    for (String name : List.of("fortran.npy", "deflated.npz")) {
      assertThat(tensorsOf("s3://bucket/numpy/" + name))
          .isEqualTo(tensorsOf(CORPUS.resolve("numpy").resolve(name)));
    }
  }

  @Test
  void weightsAreInspectedLoadedAndConverted(@TempDir Path temporary) {
    Map<?, ?> document =
        TestSamples.json(TestSamples.run("inspect", "--json", "s3://bucket/model"));
    assertThat(document.get("format")).isEqualTo("safetensors");
    assertThat(TestSamples.run("load", "--device", "host", "s3://bucket/model/").out())
        .contains("host");
    Path copy = temporary.resolve("copy.safetensors");
    CommandLineRun _ = TestSamples.run("convert", "s3://bucket/model/", copy);
    assertThat(tensorsOf(copy)).isEqualTo(tensorsOf(CORPUS.resolve("model")));
  }

  @Test
  void weightsAreConvertedToS3() {
    Object expected = tensorsOf(CORPUS.resolve("model"));
    String one = "s3://bucket/out/one/model.safetensors";
    assertThat(TestSamples.run("convert", CORPUS.resolve("model"), one).out())
        .startsWith(one + ": 1 file(s), ");
    assertThat(tensorsOf(one)).isEqualTo(expected);
    assertThat(TestSamples.run("load", "--device", "host", "s3://bucket/out/one/").out())
        .contains("host");
    // An upload replaces an object of the same name.
    CommandLineRun _ = TestSamples.run("convert", "s3://bucket/model/", one);
    String many = "s3://bucket/out/many";
    CommandLineRun _ = TestSamples.run("convert", "--shard-bytes", "100", one, many);
    assertThat(tensorsOf(many + "/")).isEqualTo(expected);
    assertThat(tensorsOf(many + "/model.safetensors.index.json")).isEqualTo(expected);
    assertThat(TestSamples.fail(64, "convert", one, many).err())
        .contains(many + " holds weights already: ");
    assertThat(TestSamples.fail(64, "convert", one, many + "/x.safetensors").err())
        .contains("has an index, which readers would follow: model.safetensors.index.json");
    assertThat(TestSamples.fail(64, "convert", one, one).err())
        .contains("OUT must not lie in the folder of IN");
    assertThat(TestSamples.fail(64, "convert", "--to", "dcp", one, "s3://bucket/dcp/").err())
        .contains("OUT must be a local path, since only safetensors are written elsewhere");
    assertThat(TestSamples.fail(64, "convert", one, "https://host/x.safetensors").err())
        .hasLineCount(1)
        .contains("https");
  }

  /// Writes and uploads shards with short rows. For local shards, batches would gather such rows
  /// from copies of the files in memory; for shards in S3, the rows are read.
  private static Path shards(Path temporary) throws IOException {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, TensorShape.of(1000)),
            new Field("label", DType.I32, TensorShape.of()));
    Map<String, byte[]> values =
        Map.of("image", TestFiles.bytes(1, 100_000), "label", TestFiles.bytes(2, 400));
    TestSamples.writeShards(temporary, fields, values, 100, 40);
    upload(temporary, "shards");
    return temporary;
  }

  @Test
  void shardsAreInspectedAndDigestedAndConverted(@TempDir Path folder, @TempDir Path temporary)
      throws IOException {
    Path shards = shards(folder);
    Object expected = TestSamples.fieldsOf(shards);
    for (String name : List.of("s3://bucket/shards/", "s3://bucket/shards/shards.json")) {
      CommandLineRun run = TestSamples.run("digest", "--json", "--device", "host", name);
      assertThat(TestSamples.json(run).get("fields")).isEqualTo(expected);
      assertThat(TestSamples.run("inspect", name).out()).contains("raw tensor shards");
    }
    Path records = temporary.resolve("a.tfrecord");
    Path same = temporary.resolve("b.tfrecord");
    CommandLineRun _ = TestSamples.run("convert", "s3://bucket/shards/", records);
    CommandLineRun _ = TestSamples.run("convert", shards, same);
    assertThat(records).hasSameBinaryContentAs(same);
  }

  @Test
  void batchesAreThoseOfTheLocalFiles(@TempDir Path folder) throws IOException, TranslateException {
    Path shards = shards(folder);
    try (NDManager manager = NDManager.newBaseManager();
        ShardDataset remote = ReadFromS3.samples("s3://bucket/shards");
        ShardDataset local = ReadFromS3.samples(shards.toString())) {
      for (int epoch = 0; epoch < 3; epoch++) {
        assertThat(TestSamples.epoch(remote, manager))
            .isEqualTo(TestSamples.epoch(local, manager))
            .hasSize(4 * 2);
      }
    }
  }

  @Test
  void theSampleLoadsWeights() {
    try (NDManager manager = NDManager.newBaseManager()) {
      assertThat(ReadFromS3.weights(manager, "s3://bucket/model/")).isNotEmpty();
    }
  }

  @Test
  void theSampleGoesOnFromWhatIsInS3(@TempDir Path folder) {
    String runs = "s3://bucket/runs/seven";
    assertThat(printed(() -> CheckpointsInS3.main(new String[] {folder + "/a", runs})))
        .contains("goes on from step 0", "step 100 is in S3");
    assertThat(printed(() -> CheckpointsInS3.main(new String[] {folder + "/b", runs})))
        .contains("goes on from step 100", "step 200 is in S3");
    try (Weights there = Checkpoints.at(runs).openLatest().orElseThrow();
        Weights here = Checkpoints.at(folder.resolve("b")).openLatest().orElseThrow();
        NDManager manager = NDManager.newBaseManager()) {
      assertThat(there.load(manager).head()).isEqualTo(here.load(manager).head());
    }
    assertThat(Checkpoints.at("s3://bucket/none").openLatest()).isEmpty();
    assertThat(Checkpoints.at(folder.resolve("b").toString()).openLatest())
        .isPresent()
        .get()
        .satisfies(Weights::close);
  }

  private static String printed(Runnable program) {
    PrintStream before = System.out;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      program.run();
    } finally {
      System.setOut(before);
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }

  @Test
  void checkpointsAreListedVerifiedComparedAndPruned(@TempDir Path folder) throws IOException {
    CheckpointsCommandTest.save(folder, 1, 2, 3);
    for (int step = 1; step <= 3; step++) {
      upload(folder.resolve("gantry-step-" + step), "kept/gantry-step-" + step);
    }
    Location _ = SERVER.put("kept/gantry-step-9/model.safetensors", new byte[10]);
    String kept = "s3://bucket/kept";
    assertThat(TestSamples.run("checkpoints", "list", kept).out())
        .contains("latest", "gantry-step-9  -", "unfinished", "loss=10.0");
    assertThat(TestSamples.run("checkpoints", "verify", kept + "/").out()).hasLineCount(3);
    assertThat(TestSamples.run("checkpoints", "verify", kept + "/gantry-step-2").out())
        .startsWith("gantry-step-2: whole, 4 files");
    CommandLineRun diff =
        CommandLineRun.of(
            "checkpoints", "diff", kept + "/gantry-step-1", folder.resolve("gantry-step-2"));
    assertThat(diff.out()).contains("! weight  F32", "! optimizer: means/weight");
    assertThat(TestSamples.run("checkpoints", "prune", kept, "--keep-last", 1).out())
        .contains("would remove gantry-step-1", "2 of 3 checkpoints would be")
        .doesNotContain("gantry-step-9");
    assertThat(TestSamples.run("checkpoints", "prune", "--yes", kept, "--keep-last", 1).out())
        .contains("removed gantry-step-1", "removed gantry-step-2");
    assertThat(TestSamples.run("checkpoints", "list", kept).out())
        .contains("gantry-step-3", "gantry-step-9")
        .doesNotContain("gantry-step-1");
    Location _ = SERVER.put("kept/gantry-step-3/model.safetensors", new byte[10]);
    assertThat(CommandLineRun.of("checkpoints", "verify", kept).err())
        .startsWith("gantry: s3://bucket/kept/gantry-step-3/model.safetensors: offset 10: wrong-")
        .hasLineCount(1);
  }

  @Test
  void whatIsNotThereIsExitCode66() {
    for (String name : List.of("s3://bucket/none", "s3://bucket/none.safetensors", "s3://none/a")) {
      assertThat(TestSamples.fail(66, "inspect", name).err()).contains(name).hasLineCount(1);
    }
  }
}
