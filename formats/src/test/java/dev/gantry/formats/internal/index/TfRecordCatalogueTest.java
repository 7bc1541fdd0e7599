// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TfRecordCatalogueTest extends IndexedFiles {
  @Test
  void allFeaturesAreFieldsAsTheyAreStored() {
    try (TfRecordCatalogue store = open()) {
      assertThat(store.fields())
          .containsExactlyInAnyOrder(
              new Field("image", DType.U8, TensorShape.of(TestExamples.IMAGE_BYTES)),
              new Field("floats", DType.F32, TensorShape.of(TestExamples.FLOATS)),
              new Field("label", DType.I64, TensorShape.of(2)));
      assertThat(store.fileSamples()).containsExactly((long) FIRST, 0L, (long) SECOND);
    }
  }

  @Test
  void chosenFeaturesComeInTheirOrderAndForm() {
    try (TfRecordCatalogue store =
        open(
            TfRecordField.of("label", DType.I32, TensorShape.of(2, 1)),
            TfRecordField.of("image", DType.BF16, TensorShape.of(5, 5)),
            new TfRecordField("floats", Optional.empty(), Optional.of(TensorShape.of(7, 1))))) {
      assertThat(store.fields())
          .containsExactly(
              new Field("label", DType.I32, TensorShape.of(2, 1)),
              new Field("image", DType.BF16, TensorShape.of(5, 5)),
              new Field("floats", DType.F32, TensorShape.of(7, 1)));
      assertThat(store.source(0)).isEqualTo(new FieldSource.HostWritten());
    }
  }

  @Test
  void theOnlyOneOfARecordIsAScalar() {
    files.clear();
    files.add(
        index(
            TestExamples.write(
                session,
                folder.resolve("one"),
                List.of(
                    new ExampleBuilder()
                        .bytes("b", new byte[1])
                        .floats("f", 1)
                        .int64s("i", 1)
                        .toBytes()))));
    try (TfRecordCatalogue store = open()) {
      assertThat(store.fields())
          .containsExactlyInAnyOrder(
              new Field("b", DType.U8, TensorShape.of(1)),
              new Field("f", DType.F32, TensorShape.of()),
              new Field("i", DType.I64, TensorShape.of()));
    }
  }

  @Test
  void everyPieceIsItsValueAndTheSpacingHolds() throws IOException {
    try (TfRecordCatalogue store = open(TfRecordField.of("image"), TfRecordField.of("floats"))) {
      for (int field = 0; field < 2; field++) {
        FieldSource.InFiles source = (FieldSource.InFiles) store.source(field);
        long widest = 0;
        boolean aligned = true;
        for (int shard : new int[] {0, 2}) {
          byte[] bytes = Files.readAllBytes(files.get(shard));
          List<Long> offsets = new ArrayList<>();
          int count = (int) (long) store.fileSamples().get(shard);
          Location expected = Location.of(files.get(shard));
          store.pieces(
              field,
              new SampleRun(shard, 1, count - 1),
              (file, offset, samples) -> {
                assertThat(file).isEqualTo(expected);
                assertThat(samples).isOne();
                offsets.add(offset);
              });
          assertThat(offsets).hasSize(count - 1).isSorted();
          store.pieces(
              field, new SampleRun(shard, 0, 1), (_, offset, _) -> offsets.addFirst(offset));
          for (int record = 0; record < count; record++) {
            long seed = shard == 0 ? 1 : 2;
            MemorySegment value =
                field == 0
                    ? MemorySegment.ofArray(TestExamples.image(seed, record))
                    : MemorySegment.ofArray(TestExamples.floats(seed, record));
            int from = (int) (long) offsets.get(record);
            assertThat(Arrays.copyOfRange(bytes, from, from + (int) value.byteSize()))
                .isEqualTo(value.toArray(ValueLayout.JAVA_BYTE));
            aligned &= field == 0 || from % Float.BYTES == 0;
            widest = record == 0 ? widest : Math.max(widest, from - offsets.get(record - 1));
          }
        }
        assertThat(source).isEqualTo(new FieldSource.InFiles(widest, aligned));
      }
    }
  }

  @Test
  void theSpanIsThatOfTheWidestSample() throws IOException {
    // The label lies between the two fields, and takes up to five bytes more in some records.
    files.clear();
    List<byte[]> records = new ArrayList<>();
    for (long label : new long[] {1, 1L << 40, 1L << 20}) {
      records.add(
          ExampleBuilder.inOrderOfInsertion()
              .bytes("image", new byte[30])
              .int64s("label", label)
              .floats("floats", 1, 2, 3)
              .int64s("more", label)
              .toBytes());
    }
    files.add(index(TestExamples.write(session, folder.resolve("c"), records)));
    try (TfRecordCatalogue store = open(TfRecordField.of("floats"), TfRecordField.of("image"))) {
      List<Long> starts = new ArrayList<>();
      for (int field = 1; field >= 0; field--) {
        store.pieces(field, new SampleRun(0, 1, 1), (_, offset, _) -> starts.add(offset));
      }
      assertThat(store.sampleSpan()).isEqualTo(starts.get(1) + 12 - starts.get(0));
    }
    try (TfRecordCatalogue store = open(TfRecordField.of("image"), TfRecordField.of("label"))) {
      assertThat(store.sampleSpan()).isEqualTo(30);
    }
    try (TfRecordCatalogue store = open(TfRecordField.of("label"))) {
      assertThat(store.sampleSpan()).isZero();
    }
  }

  @Test
  void fieldsOfARecordShareTheMemoryThatItIsReadInto() {
    int batch = 1000;
    file("many", 3, 2 * batch);
    try (TfRecordCatalogue image = open(TfRecordField.of("image"));
        TfRecordCatalogue both = open(TfRecordField.of("image"), TfRecordField.of("floats"))) {
      // Packed fields take their own memory, which the batch needs here for the floats.
      int packed = batch * Float.BYTES * TestExamples.FLOATS;
      assertThat(slotBytes(both, batch) - slotBytes(image, batch))
          .isBetween((long) packed, packed + 2L * PlanLimits.BLOCK_BYTES);
    }
  }

  private static long slotBytes(TfRecordCatalogue store, int batchSize) {
    return EpochBatches.of(store, OrderOptions.of(batchSize)).slotBytes();
  }

  @ParameterizedTest
  @EnumSource(names = {"I64", "U64", "I32", "U32", "I16", "U16"})
  void integersAreMadeInAnyDtypeWithRoom(DType dtype) {
    int bytes = dtype.bits() / Byte.SIZE;
    try (TfRecordCatalogue store = open(TfRecordField.of("label", dtype, TensorShape.of(2)))) {
      byte[] target = new byte[3 + 2 * 2 * bytes + 3];
      store.write(0, new SampleRun(2, 1, 2), MemorySegment.ofArray(target), 3);
      byte[] expected = new byte[target.length];
      int at = 3;
      for (long record = 1; record <= 2; record++) {
        for (long value : TestExamples.label(2, record)) {
          for (int b = 0; b < bytes; b++) {
            expected[at++] = (byte) (value >>> (8 * b));
          }
        }
      }
      assertThat(target).isEqualTo(expected);
    }
  }

  @Test
  void theIdentityKnowsNamesSizesAndRecordsOnly() throws IOException {
    String identity;
    try (TfRecordCatalogue store = open()) {
      identity = store.identity();
    }
    Path other = Files.createDirectory(folder.resolve("other"));
    List<Path> copies = new ArrayList<>();
    for (Path file : files) {
      copies.add(index(Files.copy(file, other.resolve(file.getFileName()))));
    }
    try (TfRecordCatalogue store =
        TfRecordCatalogue.open(
            copies.stream().map(Location::of).toList(),
            List.of(TfRecordField.of("label")),
            session)) {
      assertThat(store.identity()).isEqualTo(identity);
    }
    index(TestExamples.write(session, copies.get(0), 1, FIRST + 1));
    try (TfRecordCatalogue store =
        TfRecordCatalogue.open(copies.stream().map(Location::of).toList(), List.of(), session)) {
      assertThat(store.identity()).isNotEqualTo(identity);
    }
  }
}
