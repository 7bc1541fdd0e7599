// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;

/// The files of a folder as one input. A line of [#MARK] and the file's name precedes each file.
/// Bytes before the first mark are ignored.
final class Bundle {
  private static final byte[] MARK = "\u00ff\u00fefile ".getBytes(StandardCharsets.ISO_8859_1);
  private static final int MAX_FILES = 16;
  private static final int MAX_NAME = 80;

  private Bundle() {}

  static byte[] of(Map<String, byte[]> files) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    files.forEach((name, content) -> {
      bytes.writeBytes(MARK);
      bytes.writeBytes((name + "\n").getBytes(StandardCharsets.UTF_8));
      bytes.writeBytes(content);
    });
    return bytes.toByteArray();
  }

  /// Returns the files of an input, without names that lead out of the folder and without files
  /// after [#MAX_FILES].
  static SequencedMap<String, byte[]> files(byte[] input) {
    SequencedMap<String, byte[]> files = new LinkedHashMap<>();
    int at = next(input, 0);
    while (at < input.length && files.size() < MAX_FILES) {
      int name = at + MARK.length;
      int content = name;
      while (content < input.length && input[content] != '\n') {
        content++;
      }
      int end = next(input, content);
      String text = new String(input, name, content - name, StandardCharsets.UTF_8);
      if (text.matches("[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)?")
          && !text.matches("\\.\\.?(/.*)?|.*/\\.\\.?")
          && text.length() <= MAX_NAME
          && files.keySet().stream().noneMatch(other -> clash(text, other))) {
        int from = Math.min(content + 1, end);
        files.put(text, Arrays.copyOfRange(input, from, end));
      }
      at = end;
    }
    return files;
  }

  /// Returns whether one of the names is a folder of the other.
  private static boolean clash(String one, String other) {
    return one.startsWith(other + "/") || other.startsWith(one + "/");
  }

  /// Returns the offset of the next mark; the input's length if there is none.
  private static int next(byte[] input, int from) {
    for (int at = from; at + MARK.length <= input.length; at++) {
      if (Arrays.equals(input, at, at + MARK.length, MARK, 0, MARK.length)) {
        return at;
      }
    }
    return input.length;
  }
}
