// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.cli.CommandLineRun;
import dev.gantry.cli.TestSamples;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class FormatTest {
  @TempDir private Path temporary;
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  private Format of(Path path) {
    return Format.of(session, Location.of(path)).format();
  }

  private Format formatOf(String name, byte[] bytes) throws IOException {
    return of(Files.write(temporary.resolve(name), bytes));
  }

  private Path records(String name) {
    return TestSamples.writeRecords(
        temporary.resolve(name), Compression.NONE, new ExampleBuilder().int64s("a", 1));
  }

  private Path shards(String name) {
    Path folder = temporary.resolve(name);
    List<Field> fields = List.of(new Field("a", DType.U8, TensorShape.of(2)));
    TestSamples.writeShards(folder, fields, Map.of("a", new byte[2]), 1, 1);
    return folder;
  }

  private void assertMalformed(Path path, String kind) {
    assertThatThrownBy(() -> of(path))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageStartingWith(path + ": offset 0: " + kind + ": ");
  }

  @ParameterizedTest
  @CsvSource({
    "x.safetensors, WEIGHTS",
    "tfrecord.safetensors, WEIGHTS",
    "x.tfrecord, TFRECORD",
    "x.TFRecords.gz, TFRECORD",
    "train-00003-of-00010, TFRECORD",
    "train-00003-of-00010.zz, TFRECORD",
    "shards.json, SHARDS",
    "model.safetensors.index.json, WEIGHTS",
    "tfrecord.json, WEIGHTS"
  })
  void whereBytesSayNothingTheNameDoes(String name, Format format) throws IOException {
    assertThat(formatOf(name, new byte[0])).isEqualTo(format);
    assertThat(formatOf(name, new byte[] {1, 2, 3})).isEqualTo(format);
  }

  @ParameterizedTest
  @ValueSource(strings = {"x", "x.bin", "train-3-of-10"})
  void whereNothingSaysAnythingItIsUnknown(String name) throws IOException {
    Path file = Files.write(temporary.resolve(name), new byte[] {1, 2, 3});
    assertMalformed(file, "unknown-format");
    CommandLineRun run = TestSamples.fail(65, "inspect", file);
    assertThat(run.err()).contains(file + ": offset 0: unknown-format: ");
  }

  @ParameterizedTest
  @CsvSource({
    "version https://git-lfs.github.com/spec/v1, Git LFS pointer",
    "<html><body>Not found</body></html>, HTML",
    "'PK\u0003\u0004', ZIP archive",
    "\u0080\u0002}q, pickle",
    "PAR1, Parquet",
    "\u0089PNG, PNG picture",
    "\u00ff\u00d8\u00ff\u00e0, JPEG picture"
  })
  void aFileOfAnotherFormatIsCalledWhatItIs(String start, String name) throws IOException {
    byte[] bytes = (start + "x".repeat(600)).getBytes(StandardCharsets.ISO_8859_1);
    for (String file : List.of("x.safetensors", "x.bin", "x")) {
      Path path = Files.write(temporary.resolve(file), bytes);
      CommandLineRun run = TestSamples.fail(65, "inspect", path);
      assertThat(run.err()).contains(path + ": offset 0: another-format: ").contains(name);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "x",
        "x.bin",
        "x.pt",
        "x.gguf",
        "x.jsonl",
        "x.parquet",
        "x.png",
        "x.safetensors",
        "x.tar"
      })
  void anEmptyFileIsCalledEmpty(String name) throws IOException {
    Path file = Files.createFile(temporary.resolve(name));
    assertThat(TestSamples.fail(65, "inspect", file).err())
        .isEqualTo("gantry: " + file + ": offset 0: empty-file: the file is empty\n");
  }

  @Test
  void bytesSayMoreThanNames() throws IOException {
    byte[] safetensors =
        ByteBuffer.allocate(100).order(ByteOrder.LITTLE_ENDIAN).putLong(92).put((byte) '{').array();
    assertThat(formatOf("x.tfrecord", safetensors)).isEqualTo(Format.WEIGHTS);
    assertThat(formatOf("x", safetensors)).isEqualTo(Format.WEIGHTS);
    assertThat(of(records("y.safetensors"))).isEqualTo(Format.TFRECORD);
    assertThat(of(records("shards.json"))).isEqualTo(Format.TFRECORD);
  }

  @Test
  void shardsAreKnownByTheirFolderAndTheirJson() throws IOException {
    Path folder = shards("s");
    Path json = folder.resolve("shards.json");
    Path renamed = Files.copy(json, folder.resolve("other.json"));
    for (Path path : List.of(folder, json, renamed)) {
      assertThat(Input.open(session, Location.of(path))).isInstanceOf(Input.Shards.class);
    }
  }

  @Test
  void aFolderIsOfTheFormatOfItsFiles() throws IOException {
    Path folder = Files.createDirectory(temporary.resolve("f"));
    assertMalformed(folder, "unknown-format");
    Files.writeString(folder.resolve("README.md"), "no data");
    assertMalformed(folder, "unknown-format");
    Path second = records("f/b");
    Path first = records("f/a");
    Path damaged = Files.write(folder.resolve("c-00000-of-00001"), new byte[] {1});
    assertThat(Input.open(session, Location.of(folder)))
        .isEqualTo(new Input.Records(Stream.of(first, second, damaged).map(Location::of).toList()));
    Path shards = shards("g");
    Files.write(shards.resolve("model.safetensors"), new byte[] {1});
    assertMalformed(shards, "several-formats");
    assertThat(of(shards.resolve("shards.json"))).isEqualTo(Format.SHARDS);
  }

  @Test
  void anIndexIsNoTfRecordFile() {
    Path folder = temporary.resolve("f");
    assertThat(folder.toFile().mkdir()).isTrue();
    Path file = records("f/x.tfrecord");
    TestSamples.run("index", file);
    assertThat(Input.open(session, Location.of(folder)))
        .isEqualTo(new Input.Records(List.of(Location.of(file))));
  }

  @Test
  void aSetOfRecordsThatIsNotWholeIsRefused() throws IOException {
    Path folder = temporary.resolve("f");
    try (TfRecordShards shards =
        TfRecordShards.create(session, folder, "a.tfrecord", 2, Compression.NONE)) {
      shards.commit();
    }
    assertThat(Input.open(session, Location.of(folder)))
        .isEqualTo(
            new Input.Records(
                TfRecordShards.files(folder, "a.tfrecord", 2).stream().map(Location::of).toList()));
    Files.delete(folder.resolve("a.tfrecord-00000-of-00002"));
    assertThatThrownBy(() -> of(folder))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(folder.toString(), "wrong-file: a.tfrecord-00000-of-00002");
    List<Location> found = List.of(Location.of(folder.resolve("a.tfrecord-00001-of-00002")));
    assertThatThrownBy(() -> Input.open(session, found.getFirst()))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(folder.toString(), "wrong-file: a.tfrecord-00000-of-00002");
    assertThatThrownBy(() -> Input.recordFiles(session, found))
        .isInstanceOf(MalformedFileException.class);
  }

  @Test
  void aFolderOfCheckpointsIsToldWithTheLatestOfThem() {
    Path folder = temporary.resolve("run");
    try (CheckpointStore store =
        CheckpointStore.open(session, folder, Retention.ALL, Long.MAX_VALUE)) {
      for (long step : new long[] {2, 10}) {
        var _ =
            store.save(
                new UnsavedCheckpoint(step, new LinkedHashMap<>(), Map.of(), Map.of(), Map.of()),
                WriteOptions.defaults());
      }
    }
    assertThat(TestSamples.fail(65, "inspect", folder).err())
        .contains(folder.toString(), "it has checkpoints; name one, such as gantry-step-10");
  }

  @Test
  void aFileThatIsBeingWrittenIsNoTfRecordFile() {
    Path folder = temporary.resolve("f");
    assertThat(folder.toFile().mkdir()).isTrue();
    try (TfRecordWriter writer =
        TfRecordWriter.create(session, folder.resolve("x.tfrecord"), Compression.NONE)) {
      writer.write(new ExampleBuilder().int64s("a", 1).toBytes());
      // A crash of a writer leaves a file with such a name.
      records("f/.gantry-0123456789abcdef.tmp");
      assertMalformed(folder, "unknown-format");
      Path whole = records("f/a");
      assertThat(Input.open(session, Location.of(folder)))
          .isEqualTo(new Input.Records(List.of(Location.of(whole))));
    }
  }

  @Test
  void whatIsNoFileIsNotOpened() {
    assertMalformed(Path.of("/dev/null"), "not-a-regular-file");
  }
}
