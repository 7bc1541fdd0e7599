// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.index.WireMessages;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// Decoding without protobuf's objects gives the same result as protobuf, for any message.
class ExamplePropertiesTest {
  private static final String[] NAMES = {"a", "b", "label", "é", "", "unknown"};

  /// All features that messages of this test may have, so that no feature is ignored.
  private static final List<FeatureSpec> FEATURES =
      List.of(
          new FeatureSpec.VariableLength(
              "a", FeatureSpec.Kind.BYTES, DType.U8, 12, 7, FeatureSpec.PadTo.LONGEST),
          new FeatureSpec.FixedLength(
              "b", FeatureSpec.Kind.FLOAT, DType.F32, TensorShape.of(2), Optional.of(-1.5)),
          new FeatureSpec.VariableLength(
              "label", FeatureSpec.Kind.INT64, DType.I64, 6, -3, FeatureSpec.PadTo.MOST),
          new FeatureSpec.FixedLength(
              "é", FeatureSpec.Kind.BYTES, DType.I16, TensorShape.of(3), Optional.of(-2)));

  private static final List<FeatureSpec> SEQUENCES =
      List.of(
          new FeatureSpec.VariableSteps(
              "a",
              FeatureSpec.Kind.INT64,
              DType.I64,
              4,
              TensorShape.of(),
              9,
              FeatureSpec.PadTo.LONGEST),
          new FeatureSpec.VariableSteps(
              "b",
              FeatureSpec.Kind.FLOAT,
              DType.F32,
              4,
              TensorShape.of(2),
              0.5,
              FeatureSpec.PadTo.MOST),
          new FeatureSpec.FixedLength(
              "label", FeatureSpec.Kind.INT64, DType.I64, TensorShape.of(1), Optional.of(5)),
          new FeatureSpec.FixedSteps("é", FeatureSpec.Kind.BYTES, DType.U8, 2, TensorShape.of(3)));

  /// Writes messages like any possible writer: in parts, in any order, with repeated names.
  private record Writer(Random random) {
    byte[] message(boolean sequence) {
      return WireMessages.message(out -> {
        for (int i = random.nextInt(8) == 0 ? 2 : 1; i > 0; i--) {
          out.writeByteArray(1, map(false));
          if (sequence || random.nextInt(16) == 0) {
            out.writeByteArray(2, map(true));
          }
        }
        unknown(out);
      });
    }

    private byte[] map(boolean lists) {
      return WireMessages.message(out -> {
        for (int i = random.nextInt(6); i > 0; i--) {
          String name = NAMES[random.nextInt(NAMES.length)];
          out.writeByteArray(1, entry(name, lists ? list(name) : feature(name)));
          unknown(out);
        }
      });
    }

    private byte[] entry(String name, byte[] value) {
      return WireMessages.message(out -> {
        switch (random.nextInt(16)) {
          case 0 -> {
            out.writeByteArray(2, value);
            out.writeString(1, name);
          }
          case 1 -> out.writeByteArray(2, value);
          case 2 -> out.writeString(1, name);
          case 3 -> {
            out.writeString(1, name);
            out.writeByteArray(2, value);
            out.writeByteArray(2, value);
          }
          default -> {
            out.writeString(1, name);
            out.writeByteArray(2, value);
          }
        }
        unknown(out);
      });
    }

    private byte[] list(String name) {
      return WireMessages.message(out -> {
        for (int i = random.nextInt(4); i > 0; i--) {
          out.writeByteArray(1, feature(name));
        }
      });
    }

    /// Returns a feature, mostly of the expected kind.
    private byte[] feature(String name) {
      int usual =
          switch (name) {
            case "a", "é" -> 1;
            case "b" -> 2;
            default -> 3;
          };
      return WireMessages.message(out -> {
        for (int parts = random.nextInt(8) == 0 ? random.nextInt(5) : 1; parts > 0; parts--) {
          int kind = random.nextInt(8) == 0 ? random.nextInt(1, 4) : usual;
          out.writeByteArray(kind, WireMessages.message(list -> values(kind, list)));
        }
        unknown(out);
      });
    }

    private void values(int kind, CodedOutputStream out) throws IOException {
      switch (kind) {
        case 1 -> {
          for (int i = random.nextInt(8) == 0 ? random.nextInt(3) : 1; i > 0; i--) {
            byte[] bytes = new byte[random.nextBoolean() ? 6 : random.nextInt(10)];
            random.nextBytes(bytes);
            out.writeByteArray(1, bytes);
          }
        }
        case 2 -> {
          int count = random.nextInt(8) == 0 ? random.nextInt(4) : 2;
          if (random.nextInt(6) == 0) {
            for (int i = 0; i < count; i++) {
              out.writeFixed32(1, random.nextInt());
            }
          } else {
            byte[] packed = new byte[Float.BYTES * count];
            random.nextBytes(packed);
            out.writeByteArray(1, packed);
          }
        }
        default -> {
          int count = random.nextInt(5);
          if (random.nextInt(6) == 0) {
            for (int i = 0; i < count; i++) {
              out.writeInt64(1, random.nextLong() >> random.nextInt(64));
            }
          } else {
            out.writeByteArray(
                1,
                WireMessages.message(packed -> {
                  for (int i = 0; i < count; i++) {
                    packed.writeInt64NoTag(random.nextLong() >> random.nextInt(64));
                  }
                }));
          }
        }
      }
    }

    private void unknown(CodedOutputStream out) throws IOException {
      if (random.nextInt(40) == 0) {
        out.writeByteArray(9, new byte[3]);
      }
    }
  }

  /// Returns a decoder's result for a record: the rows and bytes, or the fault.
  private static String decoded(ExampleParser parser, ExampleDecoder decoder, byte[] message) {
    DecodedLayout layout = parser.layout(2);
    long[] rows = layout.rows();
    try (Arena arena = Arena.ofConfined()) {
      // The bytes are in native memory at an odd address, like bytes of a file.
      MemorySegment bytes = arena.allocate(message.length + 1L).asSlice(1);
      bytes.copyFrom(MemorySegment.ofArray(message));
      RawRecord record = new RawRecord(Location.of("file"), 3, 33, bytes);
      MemorySegment batch = arena.allocate(layout.bytes());
      batch.fill((byte) 0x5a);
      decoder.extend(record, rows);
      decoder.decode(record, batch, layout, rows, 1);
      return layout.views(2, rows) + HexFormat.of().formatHex(batch.toArray(ValueLayout.JAVA_BYTE));
    } catch (MalformedFileException fault) {
      return fault.kind().equals("invalid-proto") ? fault.kind() : fault.getMessage();
    }
  }

  /// Returns the message as protobuf serialises it after its generated parser has read it.
  private static byte[] rewritten(byte[] message, boolean sequence)
      throws InvalidProtocolBufferException {
    return sequence
        ? SequenceExample.parseFrom(message).toByteArray()
        : Example.parseFrom(message).toByteArray();
  }

  private static boolean isAmbiguous(List<FeatureLayout> features, byte[] message) {
    ExampleReader reader = ExampleReader.of(features, true);
    reader.read(new RawRecord(Location.of("file"), 0, 0, MemorySegment.ofArray(message)));
    return IntStream.range(0, features.size()).anyMatch(i -> isAmbiguous(reader, i));
  }

  private static boolean isAmbiguous(ExampleReader reader, int feature) {
    if (!reader.isList(feature)) {
      return reader.value(feature).isAmbiguous();
    }
    boolean ambiguous = false;
    for (long step = 0; step < reader.steps(feature); step++) {
      ambiguous |= reader.step(feature).isAmbiguous();
    }
    return ambiguous;
  }

  private static void compare(byte[] message, boolean sequence) {
    ExampleParser parser = new ExampleParser(sequence ? SEQUENCES : FEATURES);
    List<FeatureLayout> features = parser.specs().stream().map(FeatureLayout::of).toList();
    ExampleReader checked = ExampleReader.of(features, true);
    String whole = decoded(parser, new ExampleDecoder(features, 0, checked), message);
    byte[] rewritten;
    try {
      rewritten = rewritten(message, sequence);
    } catch (InvalidProtocolBufferException _) {
      assertThat(whole).isEqualTo("invalid-proto");
      return;
    }
    if (WireMessages.hasLongVarint(message) || isAmbiguous(features, message)) {
      // Protobuf's parsers disagree on these messages.
      return;
    }
    String expected = decoded(parser, parser.decoder(0), rewritten);
    assertThat(whole).isEqualTo(expected);
    assertThat(decoded(parser, parser.decoder(0), message)).isEqualTo(expected);
  }

  @Property(tries = 3000)
  void anyMessageIsReadAsProtobufReadsIt(@ForAll long seed, @ForAll boolean sequence) {
    compare(new Writer(new Random(seed)).message(sequence), sequence);
  }

  @Property(tries = 5000)
  void aChangedMessageIsReadAsProtobufReadsIt(@ForAll long seed, @ForAll boolean sequence) {
    Random random = new Random(seed);
    byte[] message = new Writer(random).message(sequence);
    if (message.length == 0) {
      return;
    }
    for (int i = random.nextInt(1, 3); i > 0; i--) {
      message[random.nextInt(message.length)] =
          (byte) (random.nextBoolean() ? random.nextInt(32) : random.nextInt(256));
    }
    compare(message, sequence);
  }
}
