package dev.gantry.formats.tfrecord.index;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.formats.tfrecord.FeatureKind;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.Feature;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// What the scanner finds is what protobuf's parser reads, for any message and any bytes.
class ExampleScannerPropertiesTest {
  private static final ValueLayout.OfInt FLOAT_BITS = Column.INT;

  /// @return whether both took the bytes
  private static boolean compare(byte[] bytes) throws ExampleScanner.LimitException {
    try (Arena arena = Arena.ofConfined()) {
      // Native and at an odd address, as in a file.
      MemorySegment record = arena.allocate(bytes.length + 1L).asSlice(1);
      record.copyFrom(MemorySegment.ofArray(bytes));
      Map<String, Feature> expected;
      try {
        expected = Example.parseFrom(bytes).getFeatures().getFeatureMap();
      } catch (InvalidProtocolBufferException _) {
        assertThat(scans(new ExampleScanner(List.of()), record)).isFalse();
        assertThat(scans(new ExampleScanner(List.of("label")), record)).isFalse();
        return false;
      }
      ExampleScanner all = new ExampleScanner(List.of());
      ExampleScanner some = new ExampleScanner(List.of("x", "absent", "image"));
      // What a record had is gone with the next one.
      for (ExampleScanner scanner : List.of(all, some)) {
        assertThat(scans(scanner, record)).isTrue();
        assertThat(scans(scanner, arena.allocate(0))).isTrue();
        scanner.names().forEach(name -> assertThat(scanner.feature(name).kind()).isNull());
        assertThat(scans(scanner, record)).isTrue();
      }
      assertThat(new TreeSet<>(all.names())).isEqualTo(new TreeSet<>(expected.keySet()));
      assertThat(some.names()).containsExactly("x", "absent", "image");
      expected.forEach((name, feature) -> requireEqual(feature, all.feature(name), record));
      for (String name : some.names()) {
        requireEqual(
            expected.getOrDefault(name, Feature.getDefaultInstance()), some.feature(name), record);
      }
      return true;
    }
  }

  private static boolean scans(ExampleScanner scanner, MemorySegment record)
      throws ExampleScanner.LimitException {
    try {
      scanner.scan(record.asByteBuffer());
      return true;
    } catch (InvalidProtocolBufferException _) {
      return false;
    }
  }

  private static void requireEqual(Feature expected, ScannedFeature found, MemorySegment record) {
    FeatureKind kind =
        switch (expected.getKindCase()) {
          case BYTES_LIST -> FeatureKind.BYTES;
          case FLOAT_LIST -> FeatureKind.FLOAT;
          case INT64_LIST -> FeatureKind.INT64;
          case KIND_NOT_SET -> null;
        };
    assertThat(found.kind()).isEqualTo(kind);
    if (kind == null || found.obstacle().startsWith("its kind changes")) {
      assertThat(found.obstacle()).isNotEmpty();
      return;
    }
    switch (kind) {
      case BYTES -> {
        assertThat(found.count()).isEqualTo(expected.getBytesList().getValueCount());
        assertThat(found.obstacle().isEmpty()).isEqualTo(found.count() == 1);
        if (found.count() == 1) {
          assertThat(payload(found, record))
              .isEqualTo(expected.getBytesList().getValue(0).toByteArray());
        }
      }
      case FLOAT -> {
        List<Float> floats = expected.getFloatList().getValueList();
        assertThat(found.count()).isEqualTo(floats.size());
        if (found.obstacle().isEmpty()) {
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
        assertThat(found.obstacle().isEmpty())
            .isEqualTo(!integers.isEmpty() && integers.size() <= IndexOptions.MOST_VALUES);
        for (int i = 0; i < Math.min(IndexOptions.MOST_VALUES, integers.size()); i++) {
          assertThat(found.value(i)).isEqualTo(integers.get(i));
        }
      }
    }
  }

  private static byte[] payload(ScannedFeature found, MemorySegment record) {
    return record.asSlice(found.offset(), found.length()).toArray(ValueLayout.JAVA_BYTE);
  }

  @Property(tries = 3000)
  void anyMessage(@ForAll long seed) throws ExampleScanner.LimitException {
    assertThat(compare(new WireMessages(new Random(seed)).example())).isTrue();
  }

  @Property(tries = 6000)
  void anyMessageWithSomeBytesChangedOrCutOff(@ForAll long seed)
      throws ExampleScanner.LimitException {
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
  void anyBytes(@ForAll byte[] bytes) throws ExampleScanner.LimitException {
    compare(bytes);
  }
}
