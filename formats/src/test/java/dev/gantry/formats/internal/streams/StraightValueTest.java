// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.examples.DecodedLayout;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.internal.examples.RecordSink;
import dev.gantry.formats.internal.examples.RowDecoder;
import dev.gantry.formats.internal.examples.StraightValue;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.Framed;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.testing.NoLeaks;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Long values are read directly into the batch, at any offset in their records.
@ExtendWith(NoLeaks.class)
class StraightValueTest {
  private static final int PIXELS = 70_000;
  private static final int BATCH = 8;

  private static final List<FeatureSpec> FEATURES =
      List.of(
          FeatureSpec.int64s("label"),
          FeatureSpec.bytes("image", PIXELS),
          FeatureSpec.floats("score"));

  @TempDir Path folder;

  private static byte[] pixels(Random random) {
    byte[] pixels = new byte[PIXELS];
    random.nextBytes(pixels);
    return pixels;
  }

  private static byte[] parts(ExampleBuilder... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (ExampleBuilder part : parts) {
      all.writeBytes(part.toBytes());
    }
    return all.toByteArray();
  }

  private static ExampleBuilder example() {
    return ExampleBuilder.inOrderOfInsertion();
  }

  /// Returns a record in one of five layouts.
  private static byte[] record(Random random, int way) {
    byte[] image = pixels(random);
    long label = random.nextLong();
    float score = random.nextFloat();
    return switch (way) {
      case 0 ->
          parts(example().bytes("image", image).int64s("label", label).floats("score", score));
      case 1 ->
          parts(example().floats("score", score).int64s("label", label).bytes("image", image));
      case 2 ->
          parts(
              example()
                  .bytes("other", new byte[random.nextInt(300)])
                  .bytes("image", image)
                  .floats("score", score)
                  .int64s("label", label));
      // The parts of a message are merged, and the last image counts.
      case 3 ->
          parts(
              example().bytes("image", pixels(random)).int64s("label", -1),
              example().bytes("image", image).floats("score", score),
              example().int64s("label", label));
      default ->
          parts(
              example().bytes("image", image),
              example().int64s("label", label).floats("score", score));
    };
  }

  private Location write(List<byte[]> records) throws IOException {
    return Location.of(Files.write(folder.resolve("records"), Framed.of(records)));
  }

  private static byte[] bytes(MemorySegment batch) {
    return batch.toArray(ValueLayout.JAVA_BYTE);
  }

  /// Decodes the batches of a file as a ring does.
  private static List<byte[]> batches(Location file) {
    List<byte[]> all = new ArrayList<>();
    try (GantrySession session = GantrySession.open();
        StreamedBatches batches =
            StreamedBatches.open(
                session,
                List.of(file),
                FEATURES,
                OrderOptions.of(BATCH),
                TfRecordOptions.defaults());
        BatchPlanSource<BatchView> source = batches.from(batches.start());
        Arena arena = Arena.ofConfined()) {
      for (var next = source.next(); next.isPresent(); next = source.next()) {
        BatchPlan<BatchView> plan = next.get();
        MemorySegment batch = arena.allocate(plan.hostWrites().bytes());
        plan.hostWrites().writers().forEach(writer -> writer.write(batch));
        all.add(bytes(batch));
      }
    }
    return all;
  }

  @Test
  void aBatchIsTheSameWhereverItsRecordsHaveTheValue() throws IOException {
    Random random = new Random(5);
    List<byte[]> records = new ArrayList<>();
    for (int i = 0; i < 6 * BATCH; i++) {
      // The first two batches have one layout, the next two all layouts in turns, and the last two
      // random layouts.
      records.add(record(random, i < 2 * BATCH ? 0 : i < 4 * BATCH ? i % 5 : random.nextInt(5)));
    }
    List<byte[]> found = batches(write(records));
    assertThat(found).hasSize(6);
    ExampleParser parser = new ExampleParser(FEATURES);
    try (Arena arena = Arena.ofConfined()) {
      for (int batch = 0; batch < found.size(); batch++) {
        MemorySegment expected = arena.allocate(parser.batchBytes(BATCH));
        List<RawRecord> raw =
            records.subList(batch * BATCH, (batch + 1) * BATCH).stream()
                .map(each -> raw(arena, each))
                .toList();
        var _ = parser.parse(raw, expected);
        assertThat(found.get(batch)).as("batch %d", batch).isEqualTo(bytes(expected));
      }
    }
  }

  private static RawRecord raw(Arena arena, byte[] record) {
    return raw(arena.allocate(record.length), record);
  }

  /// Without this test, all others would pass even if no value were read directly.
  @Test
  void afterOneRecordTheNextOnesValueIsReadToItsRow() {
    ExampleParser parser = new ExampleParser(FEATURES);
    StraightValue value = parser.straightValue();
    DecodedLayout layout = parser.layout(BATCH);
    byte[] record = record(new Random(1), 0);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment batch = arena.allocate(layout.bytes());
      RowDecoder rows = new RowDecoder(parser.decoder(0), batch, layout, layout.rows(), value);
      assertThat(rows.straight(0, record.length)).isEmpty();
      rows.accept(raw(arena, record), 0);
      RecordSink.Straight part = rows.straight(1, record.length).orElseThrow();
      assertThat(part.memory().byteSize()).isEqualTo(PIXELS);
      assertThat(part.memory().address())
          .isEqualTo(batch.address() + layout.views(BATCH, layout.rows()).get(1).offset() + PIXELS);
      part.memory().fill((byte) 7);
      byte[] around = record.clone();
      Arrays.fill(around, (int) part.start(), (int) part.start() + PIXELS, (byte) -1);
      assertThat(rows.acceptAround(raw(arena, around), 1, part)).isTrue();
      assertThat(part.memory().get(ValueLayout.JAVA_BYTE, PIXELS - 1)).isEqualTo((byte) 7);
      // A shorter record cannot have the value at the same offset.
      assertThat(rows.straight(2, PIXELS)).isEmpty();
      // After eight wrong guesses the decoder makes no further guess.
      byte[] other = record(new Random(2), 1);
      for (int i = 0; i < 8; i++) {
        assertThat(rows.acceptAround(raw(arena, other), 3, part)).isFalse();
      }
      assertThat(rows.straight(4, record.length)).isEmpty();
    }
  }

  /// Bytes around the value are changed at random, with a correct checksum. A record whose value
  /// was read directly must give the same rows, or the same error, as a record that was read
  /// whole.
  @Test
  void recordsThatSaySomethingElseAreDecodedAlikeEitherWay() {
    Random random = new Random(11);
    ExampleParser parser = new ExampleParser(FEATURES);
    DecodedLayout layout = parser.layout(1);
    byte[] good = record(random, 0);
    int around = 0;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment ours = arena.allocate(layout.bytes());
      MemorySegment others = arena.allocate(layout.bytes());
      MemorySegment data = arena.allocate(good.length);
      for (int i = 0; i < 3000; i++) {
        RowDecoder rows =
            new RowDecoder(parser.decoder(0), ours, layout, layout.rows(), parser.straightValue());
        rows.accept(raw(data, good), 0);
        byte[] changed = good.clone();
        for (int change = random.nextInt(4); change > 0; change--) {
          int at = random.nextInt(80);
          changed[at < 40 ? at : good.length - 1 - (at - 40)] = (byte) random.nextInt(256);
        }
        String expected =
            outcome(
                others,
                () -> {
                  parser.decoder(0).decode(raw(data, changed), others, layout, layout.rows(), 0);
                });
        RecordSink.Straight part = rows.straight(0, changed.length).orElseThrow();
        int start = (int) part.start();
        byte[] rest = changed.clone();
        Arrays.fill(rest, start, start + PIXELS, (byte) random.nextInt(256));
        boolean[] right = new boolean[1];
        String found =
            outcome(
                ours,
                () -> {
                  part.memory().copyFrom(MemorySegment.ofArray(changed).asSlice(start, PIXELS));
                  right[0] = rows.acceptAround(raw(data, rest), 0, part);
                  if (!right[0]) {
                    rows.accept(raw(data, changed), 0);
                  }
                });
        assertThat(found).as("try %d", i).isEqualTo(expected);
        around += right[0] ? 1 : 0;
      }
    }
    assertThat(around).isBetween(500, 2500);
  }

  private static RawRecord raw(MemorySegment data, byte[] record) {
    return new RawRecord(Path.of("x"), 0, 0, data.copyFrom(MemorySegment.ofArray(record)));
  }

  /// Returns the hash of the batch, or the message of the error.
  private static String outcome(MemorySegment batch, Runnable decoding) {
    batch.fill((byte) 0);
    try {
      decoding.run();
      return "" + Arrays.hashCode(bytes(batch));
    } catch (MalformedFileException e) {
      return String.valueOf(e.getMessage());
    }
  }

  @Test
  void aDamagedValueIsToldAsElsewhere() throws IOException {
    Random random = new Random(3);
    List<byte[]> records = new ArrayList<>();
    for (int i = 0; i < BATCH; i++) {
      records.add(record(random, 0));
    }
    byte[] framed = Framed.of(records);
    int offset = Framed.of(records.subList(0, 3)).length;
    framed[offset + PIXELS / 2] ^= 1;
    Location file = Location.of(Files.write(folder.resolve("damaged"), framed));
    assertThatThrownBy(() -> batches(file))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("offset " + offset + ": data-crc: record 3:");
  }

  /// Each of these records has something else at the offset of the value in the records before it.
  static Stream<Arguments> others() {
    byte[] image = pixels(new Random(4));
    ExampleBuilder without = example().bytes("other", image);
    ExampleBuilder floats = example().floats("image", new float[PIXELS / Float.BYTES]);
    ExampleBuilder two = example().bytes("image", image, image);
    ExampleBuilder shorter = example().bytes("image", Arrays.copyOf(image, PIXELS - 1));
    ExampleBuilder longer = example().bytes("image", Arrays.copyOf(image, PIXELS + 1));
    return Stream.of(
        Arguments.of(without, "missing-feature: record 5: the record lacks feature 'image'"),
        Arguments.of(floats, "wrong-kind: record 5: feature 'image' is of kind FLOAT, not BYTES"),
        Arguments.of(two, "wrong-length: record 5: feature 'image' has 2 strings, not one"),
        Arguments.of(
            shorter, "wrong-length: record 5: feature 'image' has length 69999, not 70000"),
        Arguments.of(
            longer, "wrong-length: record 5: feature 'image' has length 70001, not 70000"));
  }

  @ParameterizedTest
  @MethodSource("others")
  void aRecordWithAnotherValueIsToldAsElsewhere(ExampleBuilder other, String fault)
      throws IOException {
    Random random = new Random(4);
    List<byte[]> records = new ArrayList<>();
    for (int i = 0; i < BATCH; i++) {
      records.add(record(random, 0));
    }
    records.set(5, parts(other.int64s("label", 1).floats("score", 1)));
    Location file = write(records);
    assertThatThrownBy(() -> batches(file))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining(fault);
  }
}
