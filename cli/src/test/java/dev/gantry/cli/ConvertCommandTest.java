// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.samples.demo.DigitAnswers;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ConvertCommandTest {
  @TempDir private Path temporary;

  /// The folder of three safetensors files with an index, which hold 7 tensors.
  private Path model;

  @BeforeEach
  void extract() throws IOException {
    model = DigitAnswers.extract(Files.createDirectory(temporary.resolve("in")));
  }

  private static Object tensors(Path file) {
    CommandLineRun run = CommandLineRun.of("digest", "--json", "--device", "host", file);
    assertThat(run.exitCode()).as(run.err()).isZero();
    return ((Map<?, ?>) run.json()).get("tensors");
  }

  private static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  private static CommandLineRun convert(Object... arguments) {
    return CommandLineRun.of(Stream.concat(Stream.of("convert"), Stream.of(arguments)).toArray());
  }

  /// Requires that a command writes no file and prints one line that says why.
  private void assertRefused(int exitCode, Path out, Object... arguments) throws IOException {
    List<String> before = names(temporary);
    List<String> beforeIn = names(model);
    CommandLineRun run = convert(arguments);
    assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
    assertThat(run.out()).isEmpty();
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.err()).startsWith("gantry: ").contains(out.toString());
    assertThat(names(temporary)).isEqualTo(before);
    assertThat(names(model)).isEqualTo(beforeIn);
  }

  @Test
  void shardsBecomeOneFileAndShardsAgain() throws IOException {
    Path single = temporary.resolve("single.safetensors");
    CommandLineRun run = convert(model, single);
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    assertThat(run.out())
        .matches(
            "\\S+single\\.safetensors: 1 file\\(s\\), [0-9,]+ bytes, durable in [0-9.]+ s, [0-9.]+"
                + " GB/s\n");
    assertThat(tensors(single)).isEqualTo(tensors(model));
    assertThat(SafetensorsHeader.read(GantrySession.shared(), single).dataStart() % 4096).isZero();

    Path folder = temporary.resolve("sharded");
    assertThat(convert("--shard-bytes", 20_000, single, folder).exitCode()).isZero();
    List<String> names = names(folder);
    int shards = names.size() - 1;
    assertThat(shards).isGreaterThan(2);
    assertThat(names)
        .contains("model.safetensors.index.json")
        .contains(String.format("model-%05d-of-%05d.safetensors", shards, shards));
    assertThat(tensors(folder)).isEqualTo(tensors(model));
    assertThat(SafetensorsOpener.open(GantrySession.shared(), folder).metadata())
        .isEqualTo(SafetensorsOpener.open(GantrySession.shared(), model).metadata())
        .isNotEmpty();
  }

  /// A command that a signal ends removes the files that are not complete.
  @ParameterizedTest
  @ValueSource(strings = {"one.safetensors", "folder"})
  void aCommandThatIsEndedLeavesNothing(String name) throws Exception {
    long bytes = 128L << 20;
    Path large = temporary.resolve("large.safetensors");
    byte[] header =
        ("{\"a\":{\"dtype\":\"U8\",\"shape\":[" + bytes + "],\"data_offsets\":[0," + bytes + "]}}")
            .getBytes(StandardCharsets.UTF_8);
    try (RandomAccessFile file = new RandomAccessFile(large.toFile(), "rw")) {
      file.writeLong(Long.reverseBytes(header.length));
      file.write(header);
      file.setLength(Long.BYTES + header.length + bytes);
    }
    Path parent = Files.createDirectory(temporary.resolve("parent"));
    Path out = parent.resolve(name);
    try (WatchService watch = parent.getFileSystem().newWatchService()) {
      parent.register(watch, StandardWatchEventKinds.ENTRY_CREATE);
      Process process = ChildCommand.start(Stream.of("convert", large.toString(), out.toString()));
      try {
        // The first new entry is the temporary file, or the folder that will hold it.
        WatchKey _ = watch.take();
        process.toHandle().destroy();
        assertThat(process.waitFor()).isEqualTo(143);
      } finally {
        process.destroyForcibly();
      }
    }
    assertThat(names(parent)).isSubsetOf(name);
    if (Files.exists(out)) {
      assertThat(SafetensorsOpener.open(GantrySession.shared(), out).tensors().get("a").bytes())
          .isEqualTo(bytes);
      assertThat(Files.isDirectory(out) ? names(out) : List.of())
          .noneMatch(file -> file.startsWith("."));
    }
  }

  /// A file has up to 5 GB by default, which is more than the checkpoint has.
  @Test
  void byDefaultASmallCheckpointIsOneShard() throws IOException {
    Path folder = temporary.resolve("out");
    CommandLineRun run = convert("--json", model, folder);
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(names(folder)).containsExactly("model.safetensors");
    Path file = folder.resolve("model.safetensors");
    Map<?, ?> document = (Map<?, ?>) run.json();
    assertThat(document.get("files"))
        .isEqualTo(List.of(Map.of("file", file.toString(), "bytes", (int) Files.size(file))));
    assertThat(document.get("bytes")).isEqualTo((int) Files.size(file));
    assertThat(((Number) document.get("seconds")).doubleValue()).isPositive();
    assertThat(tensors(folder)).isEqualTo(tensors(model));
  }

  @Test
  void optionsMayStandBetweenInputAndOutput() throws IOException {
    Path folder = temporary.resolve("out");
    CommandLineRun run = convert(model, "--to", "dcp", folder);
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(tensors(folder)).isEqualTo(tensors(model));
  }

  @Test
  void anotherFileIsReplaced() throws IOException {
    Path out = Files.writeString(temporary.resolve("old.safetensors"), "old");
    assertThat(convert(model, out).exitCode()).isZero();
    assertThat(tensors(out)).isEqualTo(tensors(model));
  }

  @Test
  void theInputIsNotOverwritten() throws IOException {
    Path shard = model.resolve("model-00002-of-00003.safetensors");
    assertRefused(64, shard, model, shard);
    assertRefused(64, shard, model.resolve("model.safetensors.index.json"), shard);
    assertRefused(64, model, model, model);
    // In a folder without an index, all files belong to the checkpoint.
    Files.delete(model.resolve("model.safetensors.index.json"));
    assertRefused(64, model, model, model.resolve("beside.safetensors"));
    Path single = temporary.resolve("single.safetensors");
    assertThat(convert(model, single).exitCode()).isZero();
    Path link = Files.createSymbolicLink(temporary.resolve("link.safetensors"), single);
    assertRefused(64, single, single, single);
    assertRefused(64, link, single, link);
  }

  @Test
  void anotherCheckpointIsNotMixedUp() throws IOException {
    Path folder = temporary.resolve("out");
    assertThat(convert("--shard-bytes", 20_000, model, folder).exitCode()).isZero();
    List<String> before = names(folder);
    assertRefused(64, folder, model, folder);
    assertRefused(64, folder, model, folder.resolve("beside.safetensors"));
    assertThat(names(folder)).isEqualTo(before);
  }

  /// Later commands could not tell the format of a folder that has both.
  @Test
  void weightsAndShardsAreNotMixedUp() throws IOException {
    Path records =
        TestSamples.writeRecords(
            temporary.resolve("a.tfrecord"),
            Compression.NONE,
            new ExampleBuilder().int64s("label", 1));
    assertRefused(64, model, records, model);
    Path shards = temporary.resolve("shards");
    assertThat(convert(records, shards).exitCode()).isZero();
    List<String> before = names(shards);
    assertRefused(64, shards, model, shards);
    assertRefused(64, shards, model, shards.resolve("beside.safetensors"));
    assertThat(names(shards)).isEqualTo(before);
  }

  @Test
  void theFolderIsMadeWithThoseAboveIt() throws IOException {
    Path out = temporary.resolve("a").resolve("b");
    assertThat(convert(model, out).exitCode()).isZero();
    assertThat(convert(out, temporary.resolve("c").resolve("out.safetensors")).exitCode()).isZero();
  }

  @Test
  void aMissingInputIsExitCode66() throws IOException {
    Path missing = temporary.resolve("missing");
    assertRefused(66, missing, missing, temporary.resolve("out"));
  }

  @Test
  void aSizeForOneFileIsExitCode64() throws IOException {
    Path out = temporary.resolve("out.safetensors");
    assertRefused(64, out, "--shard-bytes", 5, model, out);
  }

  /// A new folder with such a name could be mistaken for a file of PyTorch, NumPy or llama.cpp. A
  /// folder that exists may have any name.
  @ParameterizedTest
  @ValueSource(strings = {"out.pt", "out.bin", "out.gguf", "out.npz"})
  void aNameOfAnotherKindOfWeightsIsExitCode64(String name) throws IOException {
    Path out = temporary.resolve(name);
    assertRefused(64, out, model, out);
    Files.createDirectory(out);
    assertThat(convert(model, out).exitCode()).isEqualTo(0);
  }
}
