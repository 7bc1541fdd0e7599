// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.examples.ExampleReader;
import dev.gantry.formats.internal.examples.FeatureValue;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Feature;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// The scanner finds the values that protobuf's parser reads, for any message and any bytes.
class FeaturePlacesPropertiesTest {
  private static final ValueLayout.OfInt FLOAT_BITS = Column.INT;

  /// @return whether both parsers accepted the bytes
  private static boolean compare(byte[] bytes) {
    try (Arena arena = Arena.ofConfined()) {
      // The bytes are in native memory at an odd address, like bytes of a file.
      MemorySegment record = arena.allocate(bytes.length + 1L).asSlice(1);
      record.copyFrom(MemorySegment.ofArray(bytes));
      Map<String, Feature> expected;
      try {
        // The message is read from a stream, because protobuf's decoder of arrays reads some
        // numbers of more than 64 bits differently.
        expected = Example.parseFrom(new ByteArrayInputStream(bytes)).getFeatures().getFeatureMap();
      } catch (IOException _) {
        assertThat(scans(ExampleReader.of(List.of(), TfRecordIndex.Options.LIMITS), record))
            .isFalse();
        assertThat(scans(ExampleReader.of(List.of("label"), TfRecordIndex.Options.LIMITS), record))
            .isFalse();
        return false;
      }
      if (WireMessages.hasLongVarint(bytes)
          && !scans(ExampleReader.of(List.of(), TfRecordIndex.Options.LIMITS), record)) {
        return false;
      }
      ExampleReader all = ExampleReader.of(List.of(), TfRecordIndex.Options.LIMITS);
      ExampleReader some =
          ExampleReader.of(List.of("x", "absent", "image"), TfRecordIndex.Options.LIMITS);
      // The values of a record are lost when the scanner reads the next record.
      for (ExampleReader scanner : List.of(all, some)) {
        assertThat(scans(scanner, record)).isTrue();
        assertThat(scans(scanner, arena.allocate(0))).isTrue();
        IntStream.range(0, scanner.size())
            .forEach(i -> assertThat(scanner.value(i).kind()).isNull());
        assertThat(scans(scanner, record)).isTrue();
      }
      assertThat(new TreeSet<>(names(all))).isEqualTo(new TreeSet<>(expected.keySet()));
      assertThat(names(some)).containsExactly("x", "absent", "image");
      expected.forEach((name, feature) -> requireEqual(feature, all, name, record));
      for (String name : names(some)) {
        requireEqual(expected.getOrDefault(name, Feature.getDefaultInstance()), some, name, record);
      }
      return true;
    }
  }

  private static boolean scans(ExampleReader scanner, MemorySegment record) {
    try {
      scanner.read(new RawRecord(Path.of("file"), 0, 0, record));
      return true;
    } catch (MalformedFileException _) {
      return false;
    }
  }

  private static void requireEqual(
      Feature expected, ExampleReader reader, String name, MemorySegment record) {
    FeatureValue found = reader.value(names(reader).indexOf(name));
    FeatureSpec.Kind kind =
        switch (expected.getKindCase()) {
          case BYTES_LIST -> FeatureSpec.Kind.BYTES;
          case FLOAT_LIST -> FeatureSpec.Kind.FLOAT;
          case INT64_LIST -> FeatureSpec.Kind.INT64;
          case KIND_NOT_SET -> null;
        };
    assertThat(found.kind()).isEqualTo(kind);
    if (kind == null) {
      return;
    }
    String obstacle = FeatureColumns.obstacle(kind, found);
    if (found.isAmbiguous()) {
      // The parser for C++ begins a new list, and the parser for Java continues the earlier one.
      assertThat(obstacle).startsWith("its kind changes");
      return;
    }
    switch (kind) {
      case BYTES -> {
        assertThat(found.count()).isEqualTo(expected.getBytesList().getValueCount());
        assertThat(obstacle.isEmpty()).isEqualTo(found.count() == 1);
        if (found.count() == 1) {
          assertThat(payload(found, record))
              .isEqualTo(expected.getBytesList().getValue(0).toByteArray());
        }
      }
      case FLOAT -> {
        List<Float> floats = expected.getFloatList().getValueList();
        assertThat(found.count()).isEqualTo(floats.size());
        int[] bits = new int[floats.size()];
        found.copyTo(MemorySegment.ofArray(bits), 0);
        for (int i = 0; i < bits.length; i++) {
          assertThat(bits[i]).isEqualTo(Float.floatToRawIntBits(floats.get(i)));
        }
        if (obstacle.isEmpty()) {
          assertThat(found.length()).isEqualTo(floats.size() * Float.BYTES);
          for (int i = 0; i < floats.size(); i++) {
            assertThat(record.get(FLOAT_BITS, found.offset() + (long) i * Float.BYTES))
                .isEqualTo(Float.floatToRawIntBits(floats.get(i)));
          }
        }
      }
      case INT64 -> {
        List<Long> integers = expected.getInt64List().getValueList();
        assertThat(found.count()).isEqualTo(integers.size());
        assertThat(obstacle.isEmpty())
            .isEqualTo(!integers.isEmpty() && integers.size() <= TfRecordIndex.Options.MAX_VALUES);
        long[] values = new long[integers.size()];
        found.copyTo(MemorySegment.ofArray(values), 0);
        if (!WireMessages.hasLongVarint(record.toArray(ValueLayout.JAVA_BYTE))) {
          assertThat(LongStream.of(values).boxed().toList()).isEqualTo(integers);
        }
      }
    }
  }

  private static List<String> names(ExampleReader reader) {
    return IntStream.range(0, reader.size()).mapToObj(reader::name).toList();
  }

  private static byte[] payload(FeatureValue found, MemorySegment record) {
    return record.asSlice(found.offset(), found.length()).toArray(ValueLayout.JAVA_BYTE);
  }

  @Property(tries = 3000)
  void anyMessage(@ForAll long seed) {
    assertThat(compare(new WireMessages(new Random(seed)).example())).isTrue();
  }

  @Property(tries = 6000)
  void anyMessageWithSomeBytesChangedOrCutOff(@ForAll long seed) {
    Random random = new Random(seed);
    byte[] bytes = new WireMessages(random).example();
    if (random.nextInt(4) == 0) {
      bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 1));
    }
    for (int i = random.nextInt(4); i > 0 && bytes.length > 0; i--) {
      int at = random.nextInt(bytes.length);
      bytes[at] =
          switch (random.nextInt(3)) {
            case 0 -> (byte) (bytes[at] ^ 1 << random.nextInt(8));
            case 1 -> (byte) (bytes[at] + random.nextInt(5) - 2);
            default -> (byte) random.nextInt();
          };
    }
    compare(bytes);
  }

  @Property(tries = 3000)
  void anyBytes(@ForAll byte[] bytes) {
    compare(bytes);
  }
}
