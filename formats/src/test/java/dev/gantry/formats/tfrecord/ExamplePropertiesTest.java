package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Shape;
import dev.gantry.formats.tfrecord.proto.Example;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// Decoding without protobuf's objects gives what protobuf gives, for any message.
class ExamplePropertiesTest {
  private static final String[] NAMES = {"a", "b", "label", "é", "", "unknown"};

  /// All features that messages here may have, so that nothing goes unseen.
  private static final List<FeatureSpec> FEATURES =
      List.of(
          new FeatureSpec.VariableLength("a", FeatureKind.BYTES, DType.U8, 12, 7, PadTo.LONGEST),
          new FeatureSpec.FixedLength(
              "b", FeatureKind.FLOAT, DType.F32, Shape.of(2), Optional.of(-1.5)),
          new FeatureSpec.VariableLength("label", FeatureKind.INT64, DType.I64, 6, -3, PadTo.MOST),
          new FeatureSpec.FixedLength(
              "é", FeatureKind.BYTES, DType.I16, Shape.of(3), Optional.of(-2)));

  private static final List<FeatureSpec> SEQUENCES =
      List.of(
          new FeatureSpec.VariableSteps(
              "a", FeatureKind.INT64, DType.I64, 4, Shape.of(), 9, PadTo.LONGEST),
          new FeatureSpec.VariableSteps(
              "b", FeatureKind.FLOAT, DType.F32, 4, Shape.of(2), 0.5, PadTo.MOST),
          new FeatureSpec.FixedLength(
              "label", FeatureKind.INT64, DType.I64, Shape.of(1), Optional.of(5)),
          new FeatureSpec.FixedSteps("é", FeatureKind.BYTES, DType.U8, 2, Shape.of(3)));

  /// Messages as writers of every kind might write them: in parts, out of order, with names that
  /// are there twice.
  private record Writer(Random random) {
    byte[] message(boolean sequence) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      for (int i = random.nextInt(8) == 0 ? 2 : 1; i > 0; i--) {
        field(out, 1, map(false));
        if (sequence || random.nextInt(16) == 0) {
          field(out, 2, map(true));
        }
      }
      unknown(out);
      return out.toByteArray();
    }

    private byte[] map(boolean lists) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      for (int i = random.nextInt(6); i > 0; i--) {
        String name = NAMES[random.nextInt(NAMES.length)];
        field(out, 1, entry(name, lists ? list(name) : feature(name)));
        unknown(out);
      }
      return out.toByteArray();
    }

    private byte[] entry(String name, byte[] value) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      byte[] key = ByteString.copyFromUtf8(name).toByteArray();
      switch (random.nextInt(16)) {
        case 0 -> {
          field(out, 2, value);
          field(out, 1, key);
        }
        case 1 -> field(out, 2, value);
        case 2 -> field(out, 1, key);
        case 3 -> {
          field(out, 1, key);
          field(out, 2, value);
          field(out, 2, value);
        }
        default -> {
          field(out, 1, key);
          field(out, 2, value);
        }
      }
      unknown(out);
      return out.toByteArray();
    }

    private byte[] list(String name) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      for (int i = random.nextInt(4); i > 0; i--) {
        field(out, 1, feature(name));
      }
      return out.toByteArray();
    }

    /// Mostly of the kind that is wanted.
    private byte[] feature(String name) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      int usual =
          switch (name) {
            case "a", "é" -> 1;
            case "b" -> 2;
            default -> 3;
          };
      for (int parts = random.nextInt(8) == 0 ? random.nextInt(3) : 1; parts > 0; parts--) {
        int kind = random.nextInt(8) == 0 ? random.nextInt(1, 4) : usual;
        field(out, kind, values(kind));
      }
      unknown(out);
      return out.toByteArray();
    }

    private byte[] values(int kind) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      switch (kind) {
        case 1 -> {
          for (int i = random.nextInt(8) == 0 ? random.nextInt(3) : 1; i > 0; i--) {
            byte[] bytes = new byte[random.nextBoolean() ? 6 : random.nextInt(10)];
            random.nextBytes(bytes);
            field(out, 1, bytes);
          }
        }
        case 2 -> {
          byte[] floats = new byte[4 * (random.nextInt(8) == 0 ? random.nextInt(4) : 2)];
          random.nextBytes(floats);
          if (random.nextInt(6) == 0) {
            for (int i = 0; i < floats.length; i += 4) {
              out.write(1 << 3 | 5);
              out.write(floats, i, 4);
            }
          } else {
            field(out, 1, floats);
          }
        }
        default -> {
          ByteArrayOutputStream packed = new ByteArrayOutputStream();
          boolean apart = random.nextInt(6) == 0;
          for (int i = random.nextInt(5); i > 0; i--) {
            if (apart) {
              out.write(1 << 3);
            }
            varint(apart ? out : packed, random.nextLong() >> random.nextInt(64));
          }
          if (!apart) {
            field(out, 1, packed.toByteArray());
          }
        }
      }
      return out.toByteArray();
    }

    private void unknown(ByteArrayOutputStream out) {
      if (random.nextInt(40) == 0) {
        field(out, 9, new byte[3]);
      }
    }

    private static void field(ByteArrayOutputStream out, int number, byte[] bytes) {
      out.write(number << 3 | 2);
      varint(out, bytes.length);
      out.writeBytes(bytes);
    }

    private static void varint(ByteArrayOutputStream out, long value) {
      long rest = value;
      while ((rest & ~0x7fL) != 0) {
        out.write((int) (rest & 0x7f) | 0x80);
        rest >>>= 7;
      }
      out.write((int) rest);
    }
  }

  /// What a decoder makes of a record: rows and bytes, or the fault.
  private static String decoded(ExampleParser parser, ExampleDecoder decoder, byte[] message) {
    RecordAddress where = new RecordAddress(Path.of("file"), 3, 33);
    DecodedLayout layout = parser.layout(2);
    long[] rows = layout.rows();
    try (Arena arena = Arena.ofConfined()) {
      // Native and at an odd address, as in a file.
      MemorySegment record = arena.allocate(message.length + 1L).asSlice(1);
      record.copyFrom(MemorySegment.ofArray(message));
      MemorySegment batch = arena.allocate(layout.bytes());
      batch.fill((byte) 0x5a);
      decoder.extend(record, where, rows);
      decoder.decode(record, where, batch, layout, rows, 1);
      return layout.views(2, rows) + HexFormat.of().formatHex(batch.toArray(ValueLayout.JAVA_BYTE));
    } catch (MalformedFileException fault) {
      // What protobuf says differs with how it is asked.
      return fault.kind().equals("invalid-proto") ? fault.kind() : fault.getMessage();
    }
  }

  private static boolean readable(byte[] message, boolean sequence) {
    try {
      if (sequence) {
        SequenceExample _ = SequenceExample.parseFrom(message);
      } else {
        Example _ = Example.parseFrom(message);
      }
      return true;
    } catch (InvalidProtocolBufferException _) {
      return false;
    }
  }

  /// @return whether it was decoded without protobuf
  private static boolean compare(byte[] message, boolean sequence) {
    ExampleParser parser = new ExampleParser(sequence ? SEQUENCES : FEATURES);
    String byProtobuf = decoded(parser, parser.decoderByProtobuf(), message);
    String ours = decoded(parser, parser.decoder(), message);
    if (readable(message, sequence)) {
      assertThat(ours).isEqualTo(byProtobuf);
    } else {
      assertThat(byProtobuf).isEqualTo("invalid-proto");
    }
    ExampleScan scan = new ExampleScan(parser.specs().stream().map(FeatureLayout::of).toList());
    return scan.scan(MemorySegment.ofArray(message));
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

  /// Else the properties above would compare protobuf with itself.
  @Property(tries = 1, generation = net.jqwik.api.GenerationMode.RANDOMIZED)
  void manyMessagesAreReadWithoutProtobuf(@ForAll long seed) {
    Random random = new Random(seed);
    List<Boolean> usual = new ArrayList<>();
    for (int i = 0; i < 400; i++) {
      boolean sequence = i % 2 == 0;
      usual.add(compare(new Writer(random).message(sequence), sequence));
    }
    assertThat(usual.stream().filter(Boolean::booleanValue).count()).isBetween(40L, 360L);
  }
}
