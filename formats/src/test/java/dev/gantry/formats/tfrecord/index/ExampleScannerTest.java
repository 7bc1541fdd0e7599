package dev.gantry.formats.tfrecord.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.formats.tfrecord.FeatureKind;
import dev.gantry.formats.tfrecord.index.WireMessages.Fields;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Why a value has no one place.
class ExampleScannerTest {
  private static final byte[] FOUR = {1, 2, 3, 4};

  private static String obstacle(Fields feature) throws Exception {
    ExampleScanner scanner = new ExampleScanner(List.of("x"));
    scanner.scan(ByteBuffer.wrap(WireMessages.example("x", feature)));
    return scanner.feature("x").obstacle();
  }

  private static byte[] list(Fields fields) {
    return WireMessages.message(fields);
  }

  @Test
  void oneStringOrChunkHasAPlace() throws Exception {
    assertThat(obstacle(x -> x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR))))).isEmpty();
    assertThat(obstacle(x -> x.writeByteArray(1, list(l -> l.writeByteArray(1, new byte[0])))))
        .isEmpty();
    assertThat(obstacle(x -> x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR))))).isEmpty();
    // One float that is not packed is four bytes all the same.
    assertThat(obstacle(x -> x.writeByteArray(2, list(l -> l.writeFloat(1, 1.5f))))).isEmpty();
    // An empty chunk is in nobody's way.
    assertThat(
            obstacle(x ->
                x.writeByteArray(
                    2,
                    list(l -> {
                      l.writeByteArray(1, FOUR);
                      l.writeByteArray(1, new byte[0]);
                    }))))
        .isEmpty();
  }

  @Test
  void othersHaveAReason() throws Exception {
    assertThat(obstacle(x -> {})).isEqualTo("it is missing");
    for (int kind = 1; kind <= 3; kind++) {
      int list = kind;
      assertThat(obstacle(x -> x.writeByteArray(list, new byte[0]))).isEqualTo("it has no value");
    }
    assertThat(
            obstacle(x ->
                x.writeByteArray(
                    1,
                    list(l -> {
                      l.writeByteArray(1, FOUR);
                      l.writeByteArray(1, FOUR);
                    }))))
        .isEqualTo("it has 2 values, not one");
    assertThat(
            obstacle(x ->
                x.writeByteArray(
                    2,
                    list(l -> {
                      l.writeFloat(1, 1);
                      l.writeFloat(1, 2);
                    }))))
        .isEqualTo("its 2 floats are not packed");
    // Also where the list itself comes in parts.
    assertThat(
            obstacle(x -> {
              x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR)));
            }))
        .isEqualTo("its floats lie in 2 places");
    assertThat(obstacle(x -> x.writeByteArray(3, list(l -> l.writeByteArray(1, new byte[65])))))
        .isEqualTo("it has 65 integers, more than 64");
    assertThat(
            obstacle(x -> {
              x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(2, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR)));
            }))
        .isEqualTo("its kind changes to and fro, which not all parsers read alike");
  }

  @Test
  void aKindThatChangesOnceIsTheLastOne() throws Exception {
    ExampleScanner scanner = new ExampleScanner(List.of());
    byte[] record =
        WireMessages.example(
            "x",
            x -> {
              x.writeByteArray(1, list(l -> l.writeByteArray(1, FOUR)));
              x.writeByteArray(3, list(l -> l.writeInt64(1, 7)));
            });
    scanner.scan(ByteBuffer.wrap(record));
    assertThat(scanner.feature("x").kind()).isEqualTo(FeatureKind.INT64);
    assertThat(scanner.feature("x").obstacle()).isEmpty();
    assertThat(scanner.feature("x").value(0)).isEqualTo(7);
  }

  @Test
  void namesAreBounded() throws Exception {
    ExampleScanner scanner = new ExampleScanner(List.of());
    String longest = "n".repeat(IndexOptions.MOST_NAME_BYTES);
    scanner.scan(ByteBuffer.wrap(WireMessages.example(longest, x -> {})));
    assertThat(scanner.names()).containsExactly(longest);
    assertThatThrownBy(
            () -> scanner.scan(ByteBuffer.wrap(WireMessages.example(longest + "n", x -> {}))))
        .isInstanceOf(ExampleScanner.LimitException.class)
        .hasMessageContaining("4097 bytes");
    // No array is made for a name that is not there.
    assertThatThrownBy(() ->
            scanner.scan(ByteBuffer.wrap(new byte[] {0x0a, 8, 0x0a, 6, 0x0a, -1, -1, -1, -1, 7})))
        .isInstanceOf(InvalidProtocolBufferException.class);
  }

  @Test
  void ofAllFeaturesThereAreNoMoreThanTheMost() throws Exception {
    List<String> names =
        IntStream.rangeClosed(1, IndexOptions.MOST_FEATURES).mapToObj(Integer::toString).toList();
    ExampleScanner all = new ExampleScanner(List.of());
    for (String name : names) {
      all.scan(ByteBuffer.wrap(WireMessages.example(name, x -> {})));
    }
    byte[] another = WireMessages.example("another", x -> {});
    assertThatThrownBy(() -> all.scan(ByteBuffer.wrap(another)))
        .isInstanceOf(ExampleScanner.LimitException.class)
        .hasMessageContaining("choose");
    ExampleScanner chosen = new ExampleScanner(names);
    chosen.scan(ByteBuffer.wrap(another));
    assertThat(chosen.names()).hasSize(IndexOptions.MOST_FEATURES);
  }
}
