// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.translate.TranslateException;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.samples.remote.ReadFromS3;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Reads TFRecord files by `s3://` and `http://`. The records, faults and batches must equal
/// those of local files.
@ExtendWith(NoLeaks.class)
class RecordsInS3Test {
  private static final Path CORPUS =
      Path.of("..", "formats", "src", "test", "resources", "corpus", "tfrecord");
  private static final Map<?, ?> VERDICTS = JsonTree.verdicts(CORPUS);
  private static final S3Server SERVER = S3Server.ofProcess();
  private static final int RECORDS = 50;

  @TempDir private static Path samples;

  @TempDir private Path temporary;

  @BeforeAll
  static void upload() throws IOException {
    for (int shard = 0; shard < 2; shard++) {
      ExampleBuilder[] examples = new ExampleBuilder[RECORDS];
      for (int i = 0; i < RECORDS; i++) {
        int number = shard * RECORDS + i;
        examples[i] =
            new ExampleBuilder()
                .bytes("image", TestFiles.bytes(number, 3000))
                .int64s("label", number);
      }
      upload(
          TestSamples.writeRecords(
              samples.resolve("train-0000" + shard + "-of-00002"), Compression.NONE, examples),
          "train/");
    }
  }

  private static void upload(Path file, String folder) throws IOException {
    Location _ = SERVER.put(folder + file.getFileName(), Files.readAllBytes(file));
  }

  private static List<?> records(Object file) {
    return (List<?>) ((Map<?, ?>) VERDICTS.get(file)).get("records");
  }

  /// The files are read in one run, because each run opens clients.
  @Test
  void digestsAgreeWithTheVerdicts() throws IOException {
    List<String> good = TfRecordCorpusTest.good().map(Object::toString).sorted().toList();
    for (String file : good) {
      upload(CORPUS.resolve(file), "good/");
    }
    Map<?, ?> document = TestSamples.json(TestSamples.run("digest", "--json", "s3://bucket/good/"));
    assertThat(document.get("records"))
        .isEqualTo(good.stream().flatMap(file -> records(file).stream()).toList());
  }

  static Stream<?> bad() {
    return TfRecordCorpusTest.bad();
  }

  @ParameterizedTest
  @MethodSource("bad")
  void faultsAreThoseOfTheLocalFile(String file) throws IOException {
    upload(CORPUS.resolve(file), "bad/");
    Location object = S3Server.location("bad/" + file);
    Map<?, ?> error = (Map<?, ?>) ((Map<?, ?>) VERDICTS.get(file)).get("error");
    List<String> digests = new ArrayList<>();
    try (TfRecordReader reader =
        TfRecordReader.open(GantrySession.shared(), object, TfRecordOptions.defaults())) {
      assertThatThrownBy(
              () -> {
                while (reader.next()) {
                  digests.add(TestSamples.sha256(reader.record().toArray(ValueLayout.JAVA_BYTE)));
                }
              })
          .isInstanceOf(MalformedFileException.class)
          .hasMessageStartingWith(
              object + ": offset " + error.get("offset") + ": " + error.get("kind"));
    }
    assertThat(digests).isEqualTo(records(file));
  }

  @Test
  void aFaultIsOneLine() throws IOException {
    upload(CORPUS.resolve("truncated-7.tfrecord"), "bad/");
    assertThat(TestSamples.fail(65, "digest", "s3://bucket/bad/truncated-7.tfrecord").err())
        .startsWith("gantry: s3://bucket/bad/truncated-7.tfrecord: offset 108: truncated")
        .hasLineCount(1);
  }

  @Test
  void aFolderIsInspectedIndexedAndConverted() {
    for (String folder : List.of("s3://bucket/train/", "s3://bucket/train")) {
      assertThat(TestSamples.run("inspect", folder).out())
          .contains("TFRecord, 2 file(s)", "100 records", "label");
    }
    assertThat(TestSamples.run("index", "s3://bucket/train/").out().lines()).hasSize(2);
    assertThat(TestSamples.run("index", "--check", "s3://bucket/train/").out())
        .contains("usable, 50 records, 2 features");
    assertThat(TestSamples.run("inspect", "s3://bucket/train/").out())
        .contains("index: usable")
        .doesNotContain("not usable");
    Path remote = temporary.resolve("remote");
    Path local = temporary.resolve("local");
    CommandLineRun _ = TestSamples.run("convert", "s3://bucket/train/", remote);
    CommandLineRun _ = TestSamples.run("convert", samples, local);
    assertThat(TestSamples.fieldsOf(remote)).isEqualTo(TestSamples.fieldsOf(local));
  }

  private static TfRecordDataset dataset(IndexUse use, String... files) {
    return TfRecordDataset.builder()
        .setPath(files)
        .addFeature(FeatureSpec.bytes("image", 3000))
        .addFeature(FeatureSpec.int64s("label"))
        .optIndex(use)
        .setSampling(8)
        .optShuffle(7)
        .build();
  }

  private static List<String> expected(IndexUse use) throws IOException, TranslateException {
    return bytes(dataset(use, samples.toString()));
  }

  @Test
  void streamsAreThoseOfTheLocalFiles() throws IOException, TranslateException {
    TfRecordDataset remote = dataset(IndexUse.NONE, "s3://bucket/train/");
    assertThat(remote.isIndexed()).isFalse();
    assertThat(bytes(remote)).isEqualTo(expected(IndexUse.NONE));
  }

  @Test
  void indexesAreMadeAndUsed() throws IOException, TranslateException {
    String file = "s3://bucket/made/train-00000-of-00002";
    upload(samples.resolve("train-00000-of-00002"), "made/");
    assertThat(dataset(IndexUse.WHERE_THERE, file))
        .satisfies(dataset -> {
          assertThat(dataset.isIndexed()).isFalse();
          dataset.close();
        });
    List<String> made = bytes(dataset(IndexUse.BUILD, file));
    assertThat(bytes(dataset(IndexUse.REQUIRE, file))).isEqualTo(made);
    String local = samples.resolve("train-00000-of-00002").toString();
    assertThat(made).isEqualTo(bytes(dataset(IndexUse.BUILD, local)));
  }

  @Test
  void anIndexServesWhereItCameWithItsFileOrAfterIt() throws IOException, TranslateException {
    Path file = TestSamples.writeRecords(temporary.resolve("a"), Compression.NONE, example(1));
    Path other = TestSamples.writeRecords(temporary.resolve("b"), Compression.NONE, example(2));
    TfRecordDataset.buildIndexes(file.toString());
    upload(file, "copied/");
    upload(temporary.resolve("a.gantry-index"), "copied/");
    bytes(dataset(IndexUse.REQUIRE, "s3://bucket/copied/a"));
    // Servers round the times of files to seconds.
    waitForNextSecond();
    Location _ = SERVER.put("copied/a", Files.readAllBytes(other));
    assertThatThrownBy(() -> dataset(IndexUse.REQUIRE, "s3://bucket/copied/a"))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("is stale: the file was written after its index");
    TfRecordDataset.buildIndexes("s3://bucket/copied/a");
    bytes(dataset(IndexUse.REQUIRE, "s3://bucket/copied/a"));
    Location _ = SERVER.put("copied/a", Files.readAllBytes(file));
    assertThatThrownBy(() -> dataset(IndexUse.REQUIRE, "s3://bucket/copied/a"))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("is stale: the file's version is not the one that was indexed");
  }

  @Test
  void theSampleReadsAFolder() throws IOException, TranslateException {
    Path file =
        TestSamples.writeRecords(
            temporary.resolve("part-0"),
            Compression.NONE,
            new ExampleBuilder().floats("vector", new float[64]).int64s("label", 3));
    upload(file, "vectors/");
    assertThat(bytes(ReadFromS3.records("s3://bucket/vectors/"))).hasSize(2 * 2);
    assertThat(TestSamples.run("index", "--check", "s3://bucket/vectors/part-0").out())
        .contains("usable, 1 records");
  }

  private static ExampleBuilder example(int number) {
    return new ExampleBuilder()
        .bytes("image", TestFiles.bytes(number, 3000))
        .int64s("label", number);
  }

  private static void waitForNextSecond() {
    long second = System.currentTimeMillis() / 1000;
    while (System.currentTimeMillis() / 1000 == second) {
      Thread.onSpinWait();
    }
  }

  @Test
  void anHttpServerTakesNoIndex() throws IOException, TranslateException {
    try (RangeServer server = new RangeServer()) {
      String file = "train-00000-of-00002";
      Location there = server.put(file, Files.readAllBytes(samples.resolve(file)));
      String url = ((Location.Remote) there).uri().toString();
      assertThat(bytes(dataset(IndexUse.WHERE_THERE, url)))
          .isEqualTo(bytes(dataset(IndexUse.NONE, samples.resolve(file).toString())));
      assertThatThrownBy(() -> dataset(IndexUse.BUILD, url))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("http");
    }
  }

  private static List<String> bytes(TfRecordDataset dataset)
      throws IOException, TranslateException {
    List<String> all = new ArrayList<>();
    try (dataset;
        NDManager manager = NDManager.newBaseManager()) {
      for (int epoch = 0; epoch < 2; epoch++) {
        all.addAll(TestSamples.epoch(dataset, manager));
      }
    }
    return all;
  }
}
