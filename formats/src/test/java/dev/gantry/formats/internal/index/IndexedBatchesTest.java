// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The reads and copies of batches from indexed files. Values with a fixed pitch are not copied.
@ExtendWith(NoLeaks.class)
class IndexedBatchesTest {
  private static final int RECORDS = 64;
  private static final int BATCH = 32;
  private static final int IMAGE_BYTES = 1000;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  /// Returns the plan of the second batch of a file with these records.
  private BatchPlan<BatchView> second(List<byte[]> records, TfRecordField... fields) {
    Path file = TestExamples.write(session, folder.resolve("data"), records);
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    TfRecordCatalogue store =
        TfRecordCatalogue.open(List.of(Location.of(file)), List.of(fields), session);
    try (EpochBatches batches = EpochBatches.of(store, OrderOptions.of(BATCH));
        BatchPlanSource<BatchView> source = batches.from(batches.start())) {
      BatchPlan<BatchView> _ = source.next().orElseThrow();
      return source.next().orElseThrow();
    }
  }

  private static List<byte[]> records(int padding, boolean even) {
    return IntStream.range(0, RECORDS)
        .mapToObj(i ->
            ExampleBuilder.inOrderOfInsertion()
                .bytes("padding", new byte[padding])
                .floats("floats", i, -i)
                .bytes("image", new byte[IMAGE_BYTES])
                .int64s("label", even ? i : 1L << i)
                .toBytes())
        .toList();
  }

  /// A later epoch opens the files again.
  @Test
  void aFileThatIsReplacedBetweenEpochsIsAnError() throws IOException {
    Path file = TestExamples.write(session, folder.resolve("replaced"), 1, 20);
    TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    TfRecordCatalogue store =
        TfRecordCatalogue.open(List.of(Location.of(file)), List.of(), session);
    try (EpochBatches batches = EpochBatches.of(store, OrderOptions.of(5))) {
      epoch(batches);
      FileTime modified = Files.getLastModifiedTime(file);
      Path other = TestExamples.write(session, folder.resolve("other"), 1, 20);
      Files.move(other, file, StandardCopyOption.REPLACE_EXISTING);
      Files.setLastModifiedTime(file, modified);
      assertThatThrownBy(() -> epoch(batches))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(file + ": offset 0: changed-meanwhile: another file")
          .hasMessageContaining("rebuild the index: ./gantry index FILE");
    }
  }

  private void epoch(EpochBatches batches) {
    RingOptions options =
        new RingOptions(
            Device.HOST,
            2,
            batches.slotBytes(),
            batches.hostBytes(),
            TransferOptions.defaults().withLimits(EpochBatches.LIMITS),
            false);
    try (PrefetchRing<BatchView> ring = session.ring(options, batches.from(batches.start()))) {
      for (Optional<RingBatch<BatchView>> next = ring.next();
          next.isPresent();
          next = ring.next()) {
        next.get().close();
      }
    }
  }

  @Test
  void recordsOfOneLengthAreOneReadAndStayWhereTheyAreRead() {
    List<byte[]> records = records(0, true);
    int recordBytes = records.getFirst().length + 16;
    BatchPlan<BatchView> plan =
        second(records, TfRecordField.of("image", DType.U8, TensorShape.of(10, 100)));
    assertThat(plan.reads()).hasSize(1);
    assertThat(plan.reads().getFirst().length()).isLessThan(BATCH * recordBytes + 2 * 4096L);
    assertThat(plan.copies()).isEmpty();
    assertThat(plan.hostWrites().bytes()).isZero();
    FieldView image = plan.label().fields().getFirst();
    assertThat(image.strides()).containsExactly((long) recordBytes, 100L, 1L);
    assertThat(image.shape()).isEqualTo(TensorShape.of(BATCH, 10, 100));
  }

  @Test
  void recordsOfManyLengthsArePackedInTheSlot() {
    BatchPlan<BatchView> plan = second(records(0, false), TfRecordField.of("image"));
    assertThat(plan.reads()).hasSize(1);
    assertThat(plan.copies()).isNotEmpty();
    assertThat(plan.copies().stream().mapToLong(copy -> copy.rows()).sum()).isEqualTo(BATCH);
    assertThat(plan.label().fields().getFirst().strides()).containsExactly(1000L, 1L);
  }

  /// All records have one length. If `aligned`, the floats of all records begin at a multiple of 4
  /// with one of the four paddings; otherwise the floats of one record in four do.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void floatsStayOnlyWhereTheyAreAligned(boolean aligned) {
    List<Long> strides = new ArrayList<>();
    for (int padding = 0; padding < Float.BYTES; padding++) {
      List<byte[]> records = records(padding, true);
      int spare = Math.floorMod(-records.getFirst().length, Float.BYTES);
      // The next record begins at the same offset modulo 4, or at another.
      int longer = aligned ? spare : spare + 1;
      List<byte[]> spaced = records.stream().map(record -> lengthened(record, longer)).toList();
      BatchPlan<BatchView> plan = second(spaced, TfRecordField.of("floats"));
      strides.add(plan.label().fields().getFirst().strides().getFirst());
      assertThat(plan.copies().isEmpty()).isEqualTo(strides.getLast() > 2);
    }
    assertThat(strides.stream().filter(stride -> stride > 2)).hasSize(aligned ? 1 : 0);
  }

  /// Lengthens a record with an unknown field.
  private static byte[] lengthened(byte[] record, int bytes) {
    byte[] longer = Arrays.copyOf(record, record.length + 2 + bytes + 2);
    longer[record.length] = 15 << 3 | 2;
    longer[record.length + 1] = (byte) (bytes + 2);
    return longer;
  }

  @Test
  void labelsNeedNoRead() {
    BatchPlan<BatchView> plan = second(records(0, true), TfRecordField.of("label"));
    assertThat(plan.reads()).isEmpty();
    assertThat(plan.copies()).isEmpty();
    assertThat(plan.hostWrites().bytes()).isEqualTo(BATCH * 8L);
  }
}
