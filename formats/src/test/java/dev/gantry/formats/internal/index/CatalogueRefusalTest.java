// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Features that cannot be fields, or not with the wanted dtype and shape.
class CatalogueRefusalTest extends IndexedFiles {
  private void refused(String reason, TfRecordField... fields) {
    assertThatThrownBy(() -> open(fields))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(reason);
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void whatDoesNotFitIsRefused() {
    refused(
        "feature 'image': 50 bytes in each record, not U8 [49]",
        TfRecordField.of("image", DType.U8, TensorShape.of(49)));
    refused(
        "feature 'image': 50 bytes in each record, not F32 [12]",
        new TfRecordField("image", Optional.of(DType.F32), Optional.empty()));
    refused(
        "feature 'floats': the values are floats, which are F32, not BF16",
        TfRecordField.of("floats", DType.BF16, TensorShape.of(14)));
    refused(
        "feature 'label': the values are integers, which F32 cannot hold",
        TfRecordField.of("label", DType.F32, TensorShape.of(2)));
    refused(
        "feature 'label': 2 integers in each record, not I64 [3]",
        TfRecordField.of("label", DType.I64, TensorShape.of(3)));
    refused("'image' is chosen twice", TfRecordField.of("image"), TfRecordField.of("image"));
    refused("has no feature 'picture'; its features are [", TfRecordField.of("picture"));
    refused("smaller than a byte", TfRecordField.of("image", DType.F4, TensorShape.of(100)));
  }

  @Test
  void whatCannotBeReadDirectlySaysWhereAndWhatToDo() {
    files.add(
        index(
            TestExamples.write(
                session,
                folder.resolve("c"),
                List.of(
                    TestExamples.record(3, 0),
                    new ExampleBuilder().bytes("image", new byte[50]).toBytes()))));
    refused(
        "feature 'floats': the index of "
            + folder.resolve("c")
            + " cannot read it: in record 1 it is missing; stream the files",
        TfRecordField.of("floats"));
    try (TfRecordCatalogue store = open(TfRecordField.of("image"))) {
      assertThat(store.fileSamples()).hasSize(4);
    }
  }

  @Test
  void shardsThatAreNotAlikeAreRefused() {
    files.add(
        index(
            TestExamples.write(
                session,
                folder.resolve("c"),
                List.of(new ExampleBuilder().bytes("image", new byte[51]).toBytes()))));
    refused(
        "51 bytes in " + folder.resolve("c") + ", and 50 bytes in " + folder.resolve("a"),
        TfRecordField.of("image"));
  }

  @Test
  void aFileWithoutAnIndexSaysWhatToDo() throws IOException {
    Files.delete(TfRecordIndex.indexFile(files.get(2)));
    refused("b.gantry-index does not exist; index the file, or stream it");
    Files.write(files.get(0), new byte[1]);
    refused("is stale: the file has 1 bytes");
  }

  @Test
  void noRecordsAreNoDataset() {
    files.removeFirst();
    files.removeLast();
    refused("no records in 1 TFRecord files");
  }

  @ParameterizedTest
  @CsvSource({
    "I8, -128, 127",
    "U8, 0, 255",
    "I16, -32768, 32767",
    "U16, 0, 65535",
    "I32, -2147483648, 2147483647",
    "U32, 0, 4294967295",
    "I64, -9223372036854775808, 9223372036854775807",
    "U64, 0, 9223372036854775807"
  })
  void whatADtypeHasNoRoomForIsRefused(DType dtype, long least, long most) {
    for (long value : new long[] {least, most, least - 1, most + 1}) {
      // For the widest dtypes, the values beyond the range wrap round to its other end.
      boolean fits = value >= least && value <= most;
      files.clear();
      files.add(
          index(
              TestExamples.write(
                  session,
                  folder.resolve("value"),
                  List.of(
                      new ExampleBuilder().int64s("n", 1, 1).toBytes(),
                      new ExampleBuilder().int64s("n", 1, value).toBytes()))));
      TfRecordField field = TfRecordField.of("n", dtype, TensorShape.of(2));
      if (fits) {
        try (TfRecordCatalogue store = open(field)) {
          byte[] target = new byte[dtype.bits() / 4];
          store.write(0, new SampleRun(0, 1, 1), MemorySegment.ofArray(target), 0);
          assertThat(target[0]).isOne();
        }
      } else {
        refused("the integer " + value + " in record 1 of ", field);
      }
    }
  }
}
