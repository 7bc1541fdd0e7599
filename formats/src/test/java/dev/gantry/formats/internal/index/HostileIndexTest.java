// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Unusable;
import dev.gantry.formats.internal.index.TfRecordIndex.Found.Usable;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.SortedMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Indexes with correct checksums and false contents.
@ExtendWith(NoLeaks.class)
class HostileIndexTest {
  private static final int IMAGE_BYTES = TestExamples.IMAGE_BYTES;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private final List<NewTensor> tensors = new ArrayList<>();
  private final List<TfRecordIndex.Feature> features = new ArrayList<>();
  private Path file;
  private FileStamp stamp;
  private long[] records;
  private int[] offsets;

  /// Writes three records, and reads the offsets that a true index has for them.
  @BeforeEach
  void write() {
    file = TestExamples.write(session, folder.resolve("data"), 1, 3);
    stamp = FileStamp.of(Location.of(file), session);
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    try (TfRecordIndex index = ((Usable) TfRecordIndex.open(file, session)).index()) {
      records = new long[3];
      offsets = new int[3];
      for (int i = 0; i < 3; i++) {
        records[i] = IndexReads.recordOffset(index, i);
        offsets[i] = (int) (IndexReads.valueOffset(index, "image", i) - records[i]);
      }
    }
    image(IMAGE_BYTES);
  }

  @AfterEach
  void close() {
    session.close();
  }

  private void image(long bytes) {
    features.clear();
    features.add(
        new TfRecordIndex.Feature(
            "image",
            Optional.of(FeatureSpec.Kind.BYTES),
            0,
            OptionalLong.of(bytes),
            Optional.empty()));
  }

  private void tensor(String name, DType dtype, TensorShape shape, ByteBuffer bytes) {
    tensors.add(
        new NewTensor(name, dtype, shape, new Memory.OnHost(MemorySegment.ofBuffer(bytes))));
  }

  private static ByteBuffer longs(long... values) {
    ByteBuffer bytes = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (long value : values) {
      bytes.putLong(value);
    }
    return bytes.flip();
  }

  private static ByteBuffer ints(int... values) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (int value : values) {
      bytes.putInt(value);
    }
    return bytes.flip();
  }

  private void recordTensor() {
    tensor("record/offset", DType.U64, TensorShape.of(records.length), longs(records));
  }

  private void offsetTensor() {
    tensor("feature/image/offset", DType.U32, TensorShape.of(offsets.length), ints(offsets));
  }

  private SortedMap<String, String> notes() {
    Map<String, Integer> checksums = new HashMap<>();
    tensors.forEach(tensor ->
        checksums.put(tensor.name(), Crc32c.of(((Memory.OnHost) tensor.source()).segment())));
    return new IndexNotes(stamp, records.length, OptionalInt.empty(), features, checksums)
        .toNotes();
  }

  private TfRecordIndex.Found open(SortedMap<String, String> notes) {
    session.write(
        NewSafetensors.file(TfRecordIndex.indexFile(file), tensors, notes).files(),
        WriteOptions.defaults());
    return TfRecordIndex.open(file, session);
  }

  private void refused(SortedMap<String, String> notes, String kind) {
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(notes)))
        .isNotNull()
        .satisfies(e -> assertThat(e.kind()).isEqualTo(kind))
        .satisfies(e -> assertThat(e.file()).isEqualTo(Location.of(TfRecordIndex.indexFile(file))));
    tensors.clear();
  }

  private void refused(String kind) {
    recordTensor();
    offsetTensor();
    refused(notes(), kind);
  }

  @Test
  void aTrueOneIsTaken() {
    recordTensor();
    offsetTensor();
    try (TfRecordIndex index = ((Usable) open(notes())).index()) {
      assertThat(IndexReads.valueOffset(index, "image", 2)).isEqualTo(records[2] + offsets[2]);
    }
  }

  @Test
  void recordsMustBeAllOfTheFile() {
    long[] good = records.clone();
    for (long wrong :
        new long[] {
          Long.MIN_VALUE, -1, 0, 11, 13, good[1] - 15, Long.MAX_VALUE, Long.MAX_VALUE - 15
        }) {
      records = good.clone();
      records[0] = wrong;
      refused("offset-out-of-range");
    }
    for (long wrong :
        new long[] {
          Long.MIN_VALUE, -1, 0, good[0] + 15, good[2] - 15, stamp.size(), Long.MAX_VALUE,
        }) {
      records = good.clone();
      records[1] = wrong;
      refused("offset-out-of-range");
    }
    for (long wrong :
        new long[] {Long.MIN_VALUE, -1, good[1] + 15, stamp.size() - 3, Long.MAX_VALUE}) {
      records = good.clone();
      records[2] = wrong;
      refused("offset-out-of-range");
    }
  }

  @Test
  void valuesMustLieInTheirRecords() {
    int room = (int) (records[1] - records[0]) - 16;
    offsets[0] = room - IMAGE_BYTES + 1;
    refused("offset-out-of-range");
    offsets[0] = -1;
    refused("offset-out-of-range");
    offsets[0] = 0;
    offsets[2] = (int) (stamp.size() - records[2]) - 4 - IMAGE_BYTES + 1;
    refused("offset-out-of-range");
    offsets[2] = 0;
    image(Integer.MAX_VALUE);
    refused("offset-out-of-range");
  }

  private void hindered(Optional<FeatureSpec.Kind> kind, long missing) {
    features.clear();
    features.add(
        new TfRecordIndex.Feature(
            "image", kind, missing, OptionalLong.empty(), Optional.of(new Obstacle(1, "longer"))));
  }

  @Test
  void onlyWhatEachRecordHasInOnePlaceHasOffsets() {
    hindered(Optional.of(FeatureSpec.Kind.BYTES), 1);
    refused("unexpected-tensor");
    hindered(Optional.of(FeatureSpec.Kind.INT64), 0);
    refused("unexpected-tensor");
    hindered(Optional.empty(), 0);
    refused("unexpected-tensor");
  }

  @Test
  void lengthsOfTheirOwnToo() {
    hindered(Optional.of(FeatureSpec.Kind.BYTES), 0);
    recordTensor();
    offsetTensor();
    refused(notes(), "missing-tensor");
    recordTensor();
    offsetTensor();
    tensor("feature/image/length", DType.U32, TensorShape.of(3), ints(1, -1, 1));
    refused(notes(), "offset-out-of-range");
    recordTensor();
    offsetTensor();
    tensor("feature/image/length", DType.U32, TensorShape.of(3), ints(1, 2, 3));
    try (TfRecordIndex index = ((Usable) open(notes())).index()) {
      assertThat(IndexReads.valueLength(index, "image", 2)).isEqualTo(3);
    }
  }

  @Test
  void tensorsMustBeWhatTheNotesNeed() {
    offsetTensor();
    refused(notes(), "missing-tensor");
    recordTensor();
    refused(notes(), "missing-tensor");
    recordTensor();
    offsetTensor();
    tensor("more", DType.U8, TensorShape.of(1), ByteBuffer.allocate(1));
    refused(notes(), "unexpected-tensor");
    recordTensor();
    tensor("feature/image/offset", DType.I32, TensorShape.of(3), ints(offsets));
    refused(notes(), "invalid-tensor");
    recordTensor();
    tensor("feature/image/offset", DType.U32, TensorShape.of(2), ints(1, 2));
    refused(notes(), "invalid-tensor");
    tensor("record/offset", DType.U64, TensorShape.of(3, 1), longs(records));
    offsetTensor();
    refused(notes(), "invalid-tensor");
  }

  /// Changes a note, and corrects the checksum.
  private SortedMap<String, String> noted(String key, String value) {
    tensors.clear();
    recordTensor();
    offsetTensor();
    SortedMap<String, String> notes = notes();
    notes.put(key, value);
    notes.put("crc32c", IndexNotes.digits(IndexNotes.checksum(notes)));
    return notes;
  }

  @Test
  void notesMustMakeSense() {
    refused(noted("format", "pt"), "not-an-index");
    refused(noted("version", "one"), "invalid-note");
    refused(noted("file_size", "-1"), "invalid-note");
    refused(noted("file_size", ""), "invalid-note");
    refused(noted("file_mtime_ns", "9223372036854775808"), "invalid-note");
    refused(noted("records", Long.toString(Long.MAX_VALUE)), "invalid-note");
    refused(noted("records", "4"), "invalid-tensor");
    refused(noted("feature/image/elements", "-1"), "invalid-note");
    refused(noted("feature/image/elements", "2147483648"), "invalid-note");
    refused(noted("feature/image/missing", "1"), "invalid-note");
    refused(noted("feature/image/number", "1"), "invalid-note");
    refused(noted("feature/image/kind", "text"), "invalid-note");
    refused(noted("feature/image/kind", "int64"), "missing-tensor");
    refused(noted("feature/other/number", "0"), "invalid-note");
    refused(noted("crc32c/record/offset", "00000000"), "checksum-mismatch");
    refused(noted("crc32c/record/offset", "123"), "invalid-note");
    SortedMap<String, String> unsummed = noted("feature/image/elements", "49");
    unsummed.put("feature/image/elements", "48");
    refused(unsummed, "checksum-mismatch");
    SortedMap<String, String> missing = noted("x", "y");
    missing.remove("crc32c/record/offset");
    missing.put("crc32c", IndexNotes.digits(IndexNotes.checksum(missing)));
    refused(missing, "checksum-mismatch");
  }

  @Test
  void anotherVersionIsNotForUs() {
    assertThat(open(noted("version", "2")))
        .isInstanceOfSatisfying(
            Unusable.class,
            unusable ->
                assertThat(unusable.reason()).endsWith("is of version 2, where only 1 is known"));
  }

  @Test
  void anySafetensorsFileIsNoIndex() {
    recordTensor();
    SortedMap<String, String> none = notes();
    none.clear();
    refused(none, "not-an-index");
  }
}
