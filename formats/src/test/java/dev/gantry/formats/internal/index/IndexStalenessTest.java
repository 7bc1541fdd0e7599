// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Unusable;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// An index can be used only for the file from which it was made.
@ExtendWith(NoLeaks.class)
class IndexStalenessTest {
  private static final int RECORDS = 20;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private Path file;

  @BeforeEach
  void write() {
    file = TestExamples.write(session, folder.resolve("data.tfrecord"), 1, RECORDS);
  }

  @AfterEach
  void close() {
    session.close();
  }

  private void build() {
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
  }

  private void requireUsable() {
    ((Usable) TfRecordIndex.open(file, session)).index().close();
  }

  private String refusal() {
    return ((Unusable) TfRecordIndex.open(file, session)).reason();
  }

  private static void shift(Path file, FileTime from, long nanoseconds) throws IOException {
    long shifted = from.to(TimeUnit.NANOSECONDS) + nanoseconds;
    Files.setLastModifiedTime(file, FileTime.from(shifted, TimeUnit.NANOSECONDS));
  }

  @Test
  void thereIsNoneBeforeItIsBuilt() {
    assertThat(refusal()).endsWith("data.tfrecord.gantry-index does not exist");
  }

  @Test
  void aFileThatIsNotThereIsAnErrorNotAStaleIndex() throws IOException {
    build();
    Files.delete(file);
    assertThatThrownBy(() -> TfRecordIndex.open(file, session))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOENT");
  }

  @Test
  void aFileOfAnotherSizeWasIndexedOtherwise() throws IOException {
    build();
    byte[] bytes = Files.readAllBytes(file);
    FileTime modified = Files.getLastModifiedTime(file);
    for (int size : new int[] {0, bytes.length - 1, bytes.length + 1}) {
      Files.write(file, Arrays.copyOf(bytes, size));
      Files.setLastModifiedTime(file, modified);
      assertThat(refusal())
          .contains(
              "gantry-index is stale: the file has "
                  + size
                  + " bytes, and had "
                  + bytes.length
                  + " when it was indexed");
    }
    Files.write(file, bytes);
    Files.setLastModifiedTime(file, modified);
    requireUsable();
  }

  @Test
  void aNanosecondIsEnoughToBeModified() throws IOException {
    build();
    FileTime modified = Files.getLastModifiedTime(file);
    for (long nanoseconds : new long[] {1, -1, 1_000_000_000}) {
      shift(file, modified, nanoseconds);
      assertThat(refusal()).contains("stale: the file's time is not the one that was indexed");
    }
    shift(file, modified, 0);
    requireUsable();
  }

  @Test
  void timesBeforeTheEpochAreTimes() throws IOException {
    FileTime early = FileTime.from(-2, TimeUnit.SECONDS);
    Files.setLastModifiedTime(file, early);
    build();
    requireUsable();
    shift(file, early, 1_000_000_000);
    assertThat(refusal()).contains("stale");
  }

  @Test
  void anotherFileInItsPlaceIsNotTheOneThatWasIndexed() throws IOException {
    build();
    FileTime modified = Files.getLastModifiedTime(file);
    Path other = TestExamples.write(session, folder.resolve("other"), 1, RECORDS);
    shift(other, modified, 1);
    Files.move(other, file, StandardCopyOption.REPLACE_EXISTING);
    assertThat(refusal()).contains("stale: the file's time is not the one that was indexed");
    build();
    requireUsable();
  }

  @Test
  void theIndexOfAnotherFileIsNone() throws IOException {
    build();
    Path other = TestExamples.write(session, folder.resolve("other"), 1, RECORDS + 1);
    Files.copy(TfRecordIndex.indexFile(file), TfRecordIndex.indexFile(other));
    assertThat(((Unusable) TfRecordIndex.open(other, session)).reason())
        .startsWith(other + ".gantry-index is stale");
  }

  @Test
  void aCopyThatKeepsItsTimeKeepsItsIndex() throws IOException {
    build();
    Path copy = Files.copy(file, folder.resolve("copy"), StandardCopyOption.COPY_ATTRIBUTES);
    Files.copy(TfRecordIndex.indexFile(file), TfRecordIndex.indexFile(copy));
    ((Usable) TfRecordIndex.open(copy, session)).index().close();
  }

  /// Datasets open such a copy: a file with the same records and another modification time is the
  /// indexed file.
  @Test
  void aCopyWithATimeOfItsOwnIsKnownByItsRecords() throws IOException {
    build();
    Path copy = folder.resolve("copy");
    byte[] bytes = Files.readAllBytes(file);
    Files.copy(TfRecordIndex.indexFile(file), TfRecordIndex.indexFile(copy));
    Files.write(copy, bytes);
    shift(copy, Files.getLastModifiedTime(file), 5);
    assertThat(TfRecordIndex.open(copy, session)).isInstanceOf(Unusable.class);
    ((Usable) TfRecordIndex.openByRecords(Location.of(copy), session)).index().close();

    // The copy is damaged, and then has other records of the same size.
    bytes[bytes.length / 2]++;
    Files.write(copy, bytes);
    shift(copy, Files.getLastModifiedTime(file), 5);
    requireStaleByRecords(copy);
    writeReversed(copy);
    assertThat(Files.size(copy)).isEqualTo(Files.size(file));
    shift(copy, Files.getLastModifiedTime(file), 5);
    requireStaleByRecords(copy);
  }

  private void writeReversed(Path copy) {
    List<byte[]> records = new ArrayList<>();
    try (TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults())) {
      while (reader.next()) {
        records.addFirst(reader.record().toArray(ValueLayout.JAVA_BYTE));
      }
    }
    try (TfRecordWriter writer = TfRecordWriter.create(session, copy, Compression.NONE)) {
      records.forEach(writer::write);
      writer.commit();
    }
  }

  private void requireStaleByRecords(Path copy) {
    assertThat(((Unusable) TfRecordIndex.openByRecords(Location.of(copy), session)).reason())
        .contains("stale: the file's time is not the one that was indexed");
  }
}
