// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.formats.internal.torch.PickleValue.Constant;
import dev.gantry.formats.internal.torch.PickleValue.Int;
import dev.gantry.formats.internal.torch.PickleValue.Opaque;
import dev.gantry.formats.internal.torch.PickleValue.Real;
import dev.gantry.formats.internal.torch.PickleValue.Text;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;

/// Reads the numbers and strings that follow an opcode.
///
/// @param input the pickle's bytes, just after the opcode
record PickleScalars(PickleInput input) {
  /// A number of this many characters, digits and sign together, fits 64 bits.
  private static final int MAX_DIGITS = 18;

  PickleValue number(int opcode) {
    return switch (opcode) {
      case 'J' -> new Int((int) input.number(Integer.BYTES));
      case 'K' -> new Int(input.number(Byte.BYTES));
      case 'M' -> new Int(input.number(Short.BYTES));
      case 0x8a -> integer(input.number(Byte.BYTES));
      case 0x8b -> integer(input.number(Integer.BYTES));
      case 'G' -> new Real(input.real());
      default -> numberOfText(opcode, text(input.line(), StandardCharsets.ISO_8859_1));
    };
  }

  private PickleValue numberOfText(int opcode, String line) {
    if (opcode == 'I' && (line.equals("00") || line.equals("01"))) {
      return line.equals("00") ? Constant.FALSE : Constant.TRUE;
    }
    try {
      if (opcode == 'F') {
        return new Real(Double.parseDouble(line));
      }
      String digits = line.endsWith("L") ? line.substring(0, line.length() - 1) : line;
      return digits.length() > MAX_DIGITS ? new Opaque() : new Int(Long.parseLong(digits));
    } catch (NumberFormatException _) {
      throw input.invalid("'" + line + "' is not a number");
    }
  }

  private PickleValue integer(long bytes) {
    if (bytes > Long.BYTES) {
      input.skip(bytes);
      return new Opaque();
    }
    int unused = Long.SIZE - Byte.SIZE * (int) bytes;
    return new Int(bytes == 0 ? 0 : input.number((int) bytes) << unused >> unused);
  }

  PickleValue string(int opcode) {
    long length =
        switch (opcode) {
          case 'U', 0x8c, 'C' -> input.number(Byte.BYTES);
          case 'T', 'X', 'B' -> input.number(Integer.BYTES);
          case 0x8d, 0x8e, 0x96 -> input.number(Long.BYTES);
          default -> 0;
        };
    return switch (opcode) {
      case 'B', 'C', 0x8e, 0x96 -> {
        input.skip(length);
        yield new Opaque();
      }
      case 'V' -> new Text(unescaped(text(input.line(), StandardCharsets.ISO_8859_1)));
      case 'S' -> quoted(text(input.line(), StandardCharsets.UTF_8));
      default -> {
        input.charge(Math.max(0, Math.min(length, input.remaining())) * 2);
        yield new Text(text(input.bytes(length), StandardCharsets.UTF_8));
      }
    };
  }

  private PickleValue quoted(String line) {
    boolean isQuoted =
        line.length() > 1
            && (line.charAt(0) == '\'' || line.charAt(0) == '"')
            && line.charAt(line.length() - 1) == line.charAt(0);
    if (!isQuoted || line.indexOf('\\') >= 0) {
      throw input.invalid("a string is not quoted, or has escapes");
    }
    return new Text(line.substring(1, line.length() - 1));
  }

  /// Replaces the escapes `\\uXXXX` that protocol 0 writes.
  private String unescaped(String line) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < line.length(); i++) {
      boolean escape = line.startsWith("\\u", i) && i + 6 <= line.length();
      try {
        text.append(escape ? (char) Integer.parseInt(line, i + 2, i + 6, 16) : line.charAt(i));
      } catch (NumberFormatException _) {
        throw input.invalid("a string has a damaged escape");
      }
      i += escape ? 5 : 0;
    }
    return text.toString();
  }

  private String text(byte[] bytes, Charset charset) {
    input.charge(2L * bytes.length);
    String text = new String(bytes, charset);
    if (text.indexOf('\uFFFD') < 0) {
      return text;
    }
    // The replacement character stands for bytes that are invalid in the charset, or the text
    // really contains it; strict decoding tells which.
    try {
      return charset.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException _) {
      throw input.fault("invalid-text", "a string in the pickle is not UTF-8");
    }
  }

  /// Reads an index of the memo as text.
  long decimal() {
    try {
      return Long.parseLong(text(input.line(), StandardCharsets.ISO_8859_1));
    } catch (NumberFormatException _) {
      throw input.invalid("an index of the memo is not a number");
    }
  }

  /// Reads a name to the end of its line.
  String line() {
    return text(input.line(), StandardCharsets.UTF_8);
  }
}
