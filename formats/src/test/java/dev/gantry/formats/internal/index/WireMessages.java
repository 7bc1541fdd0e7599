// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.WireFormat;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Random;

/// Writes examples that the format allows and that no writer makes: in parts, in any order, with
/// repeated names, changing kinds, partly packed lists, and unknown fields.
public final class WireMessages {
  private static final String[] NAMES = {"image", "label", "x", "", "né", "a/b"};

  private final Random random;

  WireMessages(Random random) {
    this.random = random;
  }

  /// Writes the fields of a message.
  @FunctionalInterface
  public interface Fields {
    void write(CodedOutputStream out) throws IOException;
  }

  /// Returns whether some bytes may be a varint with more than 64 bits. The parser for C++ drops
  /// the bits after the 64th, and refuses more than ten bytes; the parser for Java makes other
  /// numbers from some of them, and accepts some longer ones.
  public static boolean hasLongVarint(byte[] bytes) {
    int continued = 0;
    for (byte b : bytes) {
      if (continued >= 9 && b != 1) {
        return true;
      }
      continued = b < 0 ? continued + 1 : 0;
    }
    return false;
  }

  public static byte[] message(Fields fields) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CodedOutputStream out = CodedOutputStream.newInstance(bytes);
    try {
      fields.write(out);
      out.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  /// Returns a message with one entry, like any writer's.
  static byte[] example(String name, Fields feature) {
    return message(example ->
        example.writeByteArray(
            1,
            message(features ->
                features.writeByteArray(
                    1,
                    message(entry -> {
                      entry.writeString(1, name);
                      entry.writeByteArray(2, message(feature));
                    })))));
  }

  byte[] example() {
    return message(out -> some(out, 3, () -> out.writeByteArray(1, features())));
  }

  private interface Part {
    void write() throws IOException;
  }

  /// Writes up to `most` parts among unknown fields.
  private void some(CodedOutputStream out, int most, Part part) throws IOException {
    for (int i = random.nextInt(most + 1); i > 0; i--) {
      unknown(out);
      part.write();
    }
    unknown(out);
  }

  private void unknown(CodedOutputStream out) throws IOException {
    switch (random.nextInt(40)) {
      case 0 -> out.writeInt64(4 + random.nextInt(100), random.nextLong());
      case 1 -> out.writeFixed64(1, random.nextLong());
      case 2 -> out.writeString(1000, "unknown");
      case 3 -> out.writeFixed32(7, random.nextInt());
      case 4 -> {
        out.writeTag(9, WireFormat.WIRETYPE_START_GROUP);
        out.writeInt32(1, 5);
        out.writeTag(9, WireFormat.WIRETYPE_END_GROUP);
      }
      default -> {}
    }
  }

  private byte[] features() {
    return message(out -> some(out, 4, () -> out.writeByteArray(1, entry())));
  }

  private byte[] entry() {
    return message(out -> {
      boolean keyLast = random.nextInt(3) == 0;
      if (!keyLast && random.nextInt(10) > 0) {
        out.writeString(1, NAMES[random.nextInt(NAMES.length)]);
      }
      int values = random.nextInt(6) == 0 ? 2 : 1;
      some(out, values, () -> out.writeByteArray(2, feature()));
      if (keyLast) {
        out.writeString(1, NAMES[random.nextInt(NAMES.length)]);
      }
    });
  }

  private byte[] feature() {
    return message(out -> {
      if (random.nextInt(4) > 0) {
        unknown(out);
        list(out);
      } else {
        some(out, 3, () -> list(out));
      }
    });
  }

  private void list(CodedOutputStream out) throws IOException {
    switch (random.nextInt(3)) {
      case 0 -> out.writeByteArray(1, bytesList());
      case 1 -> out.writeByteArray(2, floatList());
      default -> out.writeByteArray(3, intList());
    }
  }

  private byte[] bytesList() {
    return message(out ->
        some(
            out,
            2,
            () -> {
              byte[] value = new byte[random.nextInt(200)];
              random.nextBytes(value);
              out.writeByteArray(1, value);
            }));
  }

  private byte[] floatList() {
    return message(out ->
        some(
            out,
            2,
            () -> {
              if (random.nextBoolean()) {
                byte[] packed = new byte[Float.BYTES * random.nextInt(8)];
                random.nextBytes(packed);
                out.writeByteArray(1, packed);
              } else {
                out.writeFixed32(1, random.nextInt());
              }
            }));
  }

  private byte[] intList() {
    return message(out ->
        some(
            out,
            3,
            () -> {
              if (random.nextBoolean()) {
                int most = random.nextInt(10) == 0 ? 70 : 4;
                out.writeByteArray(
                    1,
                    message(packed -> {
                      for (int i = random.nextInt(most); i > 0; i--) {
                        packed.writeInt64NoTag(random.nextLong() >> random.nextInt(64));
                      }
                    }));
              } else {
                out.writeInt64(1, random.nextLong() >> random.nextInt(64));
              }
            }));
  }
}
