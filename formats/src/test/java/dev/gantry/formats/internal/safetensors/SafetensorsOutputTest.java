// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class SafetensorsOutputTest {
  private static final int TENSOR_BYTES = 100_000;

  @TempDir Path folder;

  /// Returns `count` tensors of random bytes.
  private static List<NewTensor> tensors(int count, long seed) {
    return IntStream.range(0, count)
        .mapToObj(i ->
            new NewTensor(
                "layers." + i,
                DType.U8,
                TensorShape.of(TENSOR_BYTES),
                new Memory.OnHost(MemorySegment.ofArray(TestFiles.bytes(seed + i, TENSOR_BYTES)))))
        .toList();
  }

  /// Returns weights in three data files.
  private static NewSafetensors sharded(Path target, long seed) {
    DataFileOptions options = DataFileOptions.defaults().withFileBytes(2 * TENSOR_BYTES);
    return NewSafetensors.folder(target, tensors(6, seed), Map.of(), options);
  }

  private static void write(NewSafetensors checkpoint) {
    try (GantrySession session = GantrySession.open()) {
      checkpoint.write(session, WriteOptions.defaults());
    }
  }

  private static void assertHolds(Path place, int count, long seed) {
    WeightsCatalogue read = SafetensorsOpener.open(GantrySession.shared(), place);
    assertThat(read.tensors()).hasSize(count);
    for (int i = 0; i < count; i++) {
      StoredTensor tensor = read.tensors().get("layers." + i);
      assertThat(tensor).isNotNull();
      assertThat(TestFiles.expected(tensor.extent()))
          .isEqualTo(TestFiles.bytes(seed + i, TENSOR_BYTES));
    }
  }

  /// Returns all files and folders below the folder with their sizes.
  private SortedMap<Path, Long> contents() throws IOException {
    SortedMap<Path, Long> contents = new TreeMap<>();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.toList()) {
        contents.put(file, Files.isDirectory(file) ? -1 : Files.size(file));
      }
    }
    return contents;
  }

  private static void assertRefused(NewSafetensors checkpoint, String... named) {
    assertThatThrownBy(() -> write(checkpoint))
        .isInstanceOf(MisuseException.class)
        .message()
        .contains(named)
        .hasLineCount(1);
  }

  @Test
  void aFolderThatIsNotThereIsMade() {
    Path target = folder.resolve("new");
    write(sharded(target, 1));
    assertHolds(target, 6, 1);
    assertThat(target).isDirectoryNotContaining(file -> file.toString().endsWith(".tmp"));
  }

  @Test
  void whatElseIsInTheFolderStays() throws IOException {
    Path config = Files.writeString(folder.resolve("config.json"), "{}");
    write(sharded(folder, 1));
    assertHolds(folder, 6, 1);
    assertThat(config).hasContent("{}");
  }

  @Test
  void twentyThousandTensorsAreReadBack() {
    List<NewTensor> many =
        IntStream.range(0, 20_000)
            .mapToObj(i ->
                new NewTensor(
                    "layers." + i,
                    i % 2 == 0 ? DType.BF16 : DType.F32,
                    TensorShape.of(4),
                    new Memory.OnHost(
                        MemorySegment.ofArray(TestFiles.bytes(i, i % 2 == 0 ? 8 : 16)))))
            .toList();
    Path file = folder.resolve("many.safetensors");
    write(NewSafetensors.file(file, many, Map.of()));
    WeightsCatalogue read = SafetensorsOpener.open(GantrySession.shared(), file);
    assertThat(read.tensors()).hasSize(20_000);
    for (int i : List.of(0, 1, 777, 19_998, 19_999)) {
      StoredTensor tensor = read.tensors().get("layers." + i);
      assertThat(tensor).isNotNull();
      assertThat(TestFiles.expected(tensor.extent()))
          .isEqualTo(TestFiles.bytes(i, i % 2 == 0 ? 8 : 16));
    }
  }

  @Test
  void oneFileIsReplaced() {
    Path file = folder.resolve("x.safetensors");
    write(NewSafetensors.file(file, tensors(3, 1), Map.of()));
    write(NewSafetensors.file(file, tensors(2, 9), Map.of()));
    assertHolds(file, 2, 9);
  }

  /// The parts are read from the old file until the new file is complete.
  @Test
  void aFileCanBeMadeOfItsOwnTensors() {
    Path file = folder.resolve("x.safetensors");
    write(NewSafetensors.file(file, tensors(3, 1), Map.of()));
    List<NewTensor> parts =
        SafetensorsHeader.read(GantrySession.shared(), file).tensors().values().stream()
            .map(tensor ->
                new NewTensor(
                    tensor.name(),
                    tensor.dtype(),
                    tensor.shape(),
                    new Source.FilePart(tensor.extent())))
            .toList();
    write(NewSafetensors.file(file, parts, Map.of("longer", "x".repeat(10_000))));
    assertHolds(file, 3, 1);
  }

  @Test
  void aFileIsNotPutBesideAnIndex() throws IOException {
    write(sharded(folder, 1));
    SortedMap<Path, Long> before = contents();
    assertRefused(
        NewSafetensors.file(folder.resolve("x.safetensors"), tensors(1, 5), Map.of()),
        "index",
        "model.safetensors.index.json");
    assertThat(contents()).isEqualTo(before);
    assertHolds(folder, 6, 1);
  }

  @Test
  void aFolderWithWeightsIsRefused() throws IOException {
    write(sharded(folder, 1));
    SortedMap<Path, Long> before = contents();
    assertRefused(sharded(folder, 5), "holds weights", "model-00001-of-00003.safetensors");
    assertThat(contents()).isEqualTo(before);
    assertHolds(folder, 6, 1);
  }

  @Test
  void whatIsInTheWayIsRefused() throws IOException {
    Files.createDirectory(folder.resolve("model-00002-of-00003.safetensors"));
    SortedMap<Path, Long> before = contents();
    assertRefused(sharded(folder, 5), "model-00002-of-00003.safetensors is there");
    assertThat(contents()).isEqualTo(before);
  }

  @ParameterizedTest
  @CsvSource({
    "OPEN, 1",
    "OPEN, 4",
    "FALLOCATE, 2",
    "PWRITE, 1",
    "PWRITE, 3",
    "FTRUNCATE, 2",
    "FSYNC, 3",
    "RENAME, 1",
    "RENAME, 2",
    "RENAME, 4",
    "FSYNC, 5",
    "MKDIR, 1"
  })
  void aFailureLeavesTheFolderAsItWas(Function function, int call) throws IOException {
    Files.writeString(folder.resolve("config.json"), "{}");
    SortedMap<Path, Long> before = contents();
    // Calls are counted over all threads, so the failing file may vary.
    for (Path target : List.of(folder, folder.resolve("new"))) {
      if (function == Function.MKDIR && target.equals(folder)) {
        continue;
      }
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE).from(function, call, new Fails(Errno.ENOSPC));
      try (GantrySession session = Sessions.over(calls)) {
        assertThatThrownBy(() -> sharded(target, 1).write(session, WriteOptions.defaults()))
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("ENOSPC");
      }
      assertThat(contents()).isEqualTo(before);
    }
  }

  /// The removal of renamed files fails, too, so they stay as after a crash.
  @Test
  void shardsWithoutTheOthersDoNotPassForACheckpoint() {
    for (int rename = 2; rename <= 4; rename++) {
      Path target = folder.resolve("after-" + rename);
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE)
              .from(Function.RENAME, rename, new Fails(Errno.EIO))
              .from(Function.UNLINK, 1, new Fails(Errno.EIO));
      try (GantrySession session = Sessions.over(calls)) {
        assertThatThrownBy(() -> sharded(target, 1).write(session, WriteOptions.defaults()))
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("rename");
      }
      assertThatThrownBy(() -> SafetensorsOpener.open(GantrySession.shared(), target))
          .isInstanceOfSatisfying(
              MalformedFileException.class,
              refusal -> assertThat(refusal.kind()).isEqualTo("missing-shard"));
    }
  }

  @Test
  void aFullDiskLeavesTheOldFile() throws IOException {
    Path file = folder.resolve("x.safetensors");
    write(NewSafetensors.file(file, tensors(3, 1), Map.of()));
    SortedMap<Path, Long> before = contents();
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).from(Function.PWRITE, 2, new Fails(Errno.ENOSPC));
    try (GantrySession session = Sessions.over(calls)) {
      WriteOptions options = WriteOptions.defaults().withRequestBytes(64 << 10);
      assertThatThrownBy(
              () -> NewSafetensors.file(file, tensors(3, 7), Map.of()).write(session, options))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOSPC");
    }
    assertThat(contents()).isEqualTo(before);
    assertHolds(file, 3, 1);
  }

  @Test
  void aFolderThatIsNoFolderIsAnError() throws IOException {
    Path file = Files.writeString(folder.resolve("x"), "");
    assertRefused(sharded(file, 1), file + " exists and is not a folder");
  }

  @Test
  void aPathThatWasMadeOfAUrlIsRefused() {
    String reason = ": there is no such folder; a Path holds no URL";
    assertRefused(sharded(Path.of("s3://bucket/run"), 1), "s3:/bucket/run" + reason);
    Path file = Path.of("s3://x.safetensors");
    assertRefused(NewSafetensors.file(file, tensors(1, 1), Map.of()), file + reason);
    assertThat(Path.of("s3:")).doesNotExist();
  }

  @Test
  void theFolderIsMadeWithThoseAboveItAndTakenBack() throws IOException {
    Path target = folder.resolve("a/b/c");
    FaultyFileCalls full =
        new FaultyFileCalls(Libc.INSTANCE).from(Function.PWRITE, 1, new Fails(Errno.ENOSPC));
    try (GantrySession session = Sessions.over(full)) {
      for (NewSafetensors checkpoint :
          List.of(
              sharded(target, 1),
              NewSafetensors.file(target.resolve("x.safetensors"), tensors(1, 1), Map.of()))) {
        assertThatThrownBy(() -> checkpoint.write(session, WriteOptions.defaults()))
            .hasMessageContaining("ENOSPC");
        assertThat(folder).isEmptyDirectory();
      }
    }
    write(sharded(target, 1));
    assertHolds(target, 6, 1);
    Path file = folder.resolve("d/e/x.safetensors");
    write(NewSafetensors.file(file, tensors(2, 7), Map.of()));
    assertHolds(file, 2, 7);
  }

  /// The second writer begins after the first has written its index.
  @Test
  void aSecondWriterOfAFolderIsRefusedAndTheFirstGoesOn() {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE)
            .at(
                Function.RENAME,
                1,
                new After(() ->
                    assertRefused(sharded(folder, 5), "another writer of weights uses " + folder)));
    try (GantrySession session = Sessions.over(calls)) {
      sharded(folder, 1).write(session, WriteOptions.defaults());
    }
    assertHolds(folder, 6, 1);
    assertThat(folder).isDirectoryNotContaining(path -> path.endsWith(".gantry.lock"));
  }
}
