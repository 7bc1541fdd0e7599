// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import java.util.zip.InflaterInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

@ExtendWith(NoLeaks.class)
class TfRecordWriterTest {
  private static final List<byte[]> RECORDS =
      List.of(TestFiles.bytes(1, 600_000), new byte[0], TestFiles.bytes(2, 5));

  @TempDir Path folder;

  @Test
  void theFolderIsMadeWithThoseAboveItAndTakenBack() {
    Path deep = folder.resolve("a/b");
    try (GantrySession session = GantrySession.open()) {
      TfRecordWriter.create(session, deep.resolve("x"), Compression.GZIP).close();
      assertThat(folder).isEmptyDirectory();
      TfRecordShards.create(session, deep, "x", 3, Compression.NONE).close();
      assertThat(folder).isEmptyDirectory();
      try (TfRecordShards writer = TfRecordShards.create(session, deep, "x", 3, Compression.NONE)) {
        writer.write(1, MemorySegment.ofArray(new byte[5]));
        writer.commit();
      }
      assertThat(read(session, deep.resolve("x-00001-of-00003"))).hasSize(1);
    }
  }

  @ParameterizedTest
  @EnumSource(Compression.class)
  void aCommittedOrClosedWriterTakesNoRecord(Compression compression) {
    TfRecordWriter committed = TfRecordWriter.create(folder.resolve("committed"), compression);
    committed.commit();
    TfRecordWriter closed = TfRecordWriter.create(folder.resolve("closed"), compression);
    closed.close();
    for (TfRecordWriter writer : List.of(committed, closed)) {
      assertThatThrownBy(() -> writer.write(new byte[1]))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("is closed already");
    }
  }

  private static List<byte[]> read(GantrySession session, Path file) {
    List<byte[]> records = new ArrayList<>();
    try (TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults())) {
      while (reader.next()) {
        records.add(reader.record().toArray(ValueLayout.JAVA_BYTE));
      }
    }
    return records;
  }

  private static byte[] inflated(byte[] bytes, Compression compression) throws IOException {
    InputStream in = new ByteArrayInputStream(bytes);
    try (InputStream plain =
        switch (compression) {
          case NONE -> in;
          case GZIP -> new GZIPInputStream(in);
          case ZLIB -> new InflaterInputStream(in);
        }) {
      return plain.readAllBytes();
    }
  }

  static Stream<Path> goodFiles() {
    Path tensorFlows = Verdict.CORPUS.resolve("from-tensorflow");
    return Stream.concat(
        Stream.of(tensorFlows.resolve("part-m-00000"), tensorFlows.resolve("part-m-00000.gz")),
        Verdict.all().entrySet().stream()
            .filter(entry -> entry.getValue().error() == null)
            .map(Map.Entry::getKey)
            .map(Verdict.CORPUS::resolve));
  }

  @ParameterizedTest
  @MethodSource("goodFiles")
  void writtenAgainTheCorpusIsTheSame(Path file) throws IOException {
    Path again = folder.resolve("again");
    try (GantrySession session = GantrySession.open();
        TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults());
        TfRecordWriter writer = TfRecordWriter.create(session, again, Compression.NONE)) {
      while (reader.next()) {
        writer.write(reader.record());
      }
      writer.commit();
      assertThat(Files.readAllBytes(again))
          .isEqualTo(inflated(Files.readAllBytes(file), reader.compression()));
    }
  }

  @ParameterizedTest
  @EnumSource
  void everyReaderReadsWhatIsCompressed(Compression compression) throws IOException {
    Path file = folder.resolve("records");
    try (GantrySession session = GantrySession.open();
        TfRecordWriter writer = TfRecordWriter.create(session, file, compression)) {
      RECORDS.forEach(writer::write);
      assertThat(writer.records()).isEqualTo(3);
      writer.commit();
      assertThat(Framed.words(read(session, file))).isEqualTo(Framed.words(RECORDS));
    }
    assertThat(inflated(Files.readAllBytes(file), compression)).isEqualTo(Framed.of(RECORDS));
    assertThat(folder).isDirectoryContaining(file::equals);
  }

  @ParameterizedTest
  @EnumSource
  void withoutCommitNothingChanges(Compression compression) throws IOException {
    Path file = Files.writeString(folder.resolve("records"), "old");
    try (GantrySession session = GantrySession.open()) {
      TfRecordWriter writer = TfRecordWriter.create(session, file, compression);
      RECORDS.forEach(writer::write);
      writer.close();
      assertThatThrownBy(() -> writer.write(RECORDS.getFirst()))
          .isInstanceOf(RuntimeException.class);
      assertThatThrownBy(writer::commit).isInstanceOf(MisuseException.class);
    }
    assertThat(file).hasContent("old");
    assertThat(folder).isDirectoryNotContaining(path -> !path.equals(file));
  }

  @Test
  void shardsAreNamedAsTensorFlowNamesThem() {
    try (GantrySession session = GantrySession.open();
        TfRecordShards shards =
            TfRecordShards.create(session, folder, "train", 3, Compression.NONE)) {
      for (int i = 0; i < 10; i++) {
        shards.write(i % 3, MemorySegment.ofArray(new byte[] {(byte) i}));
      }
      assertThat(shards.records(0)).isEqualTo(4);
      assertThat(folder).isDirectoryNotContaining("glob:**/train*");
      shards.commit();
      assertThat(TfRecordShards.files(folder, "train", 3))
          .extracting(path -> path.getFileName().toString())
          .containsExactly("train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003");
      assertThat(read(session, folder.resolve("train-00001-of-00003")))
          .usingElementComparator(Arrays::compare)
          .containsExactly(new byte[] {1}, new byte[] {4}, new byte[] {7});
      assertThatThrownBy(() -> TfRecordShards.create(session, folder, "x", 0, Compression.NONE))
          .isInstanceOf(MisuseException.class);
    }
  }

  /// A failed write leaves the old files in the folder, and no new one.
  @ParameterizedTest
  @EnumSource
  void aFailureAtAnyCallLeavesTheOldFiles(Compression compression) throws IOException {
    List<Path> files = TfRecordShards.files(folder, "t", 2);
    for (Path file : files) {
      Files.writeString(file, "old");
    }
    for (Function function : List.of(Function.OPEN, Function.PWRITE, Function.FSYNC)) {
      for (int call = 1; call <= 2; call++) {
        FaultyFileCalls calls =
            new FaultyFileCalls(Libc.INSTANCE).at(function, call, new Fails(Errno.ENOSPC));
        assertThatThrownBy(() -> writeShards(calls, compression))
            .as("%s %s", function, call)
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("ENOSPC");
        assertThat(files).allSatisfy(file -> assertThat(file).hasContent("old"));
        assertThat(folder).isDirectoryNotContaining(path -> !files.contains(path));
      }
    }
  }

  @Test
  void interruptsAndShortWritesAreOvercome() throws IOException {
    for (long seed = 0; seed < 4; seed++) {
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE)
              .seeded(Function.OPEN, seed, 2, new Fails(Errno.EINTR))
              .seeded(Function.PWRITE, seed, 3, new Fails(Errno.EINTR))
              .seeded(Function.PWRITE, seed, 2, new Shortens(12_345));
      writeShards(calls, Compression.NONE);
      for (Path file : TfRecordShards.files(folder, "t", 2)) {
        assertThat(Files.readAllBytes(file)).isEqualTo(Framed.of(RECORDS));
      }
    }
  }

  private void writeShards(FaultyFileCalls calls, Compression compression) {
    try (GantrySession session = Sessions.over(calls);
        TfRecordShards shards = TfRecordShards.create(session, folder, "t", 2, compression)) {
      for (byte[] record : RECORDS) {
        shards.write(0, MemorySegment.ofArray(record));
        shards.write(1, MemorySegment.ofArray(record));
      }
      shards.commit();
    }
  }
}
