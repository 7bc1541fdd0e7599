// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import java.util.OptionalLong;

/// The records of an extended header (pax, POSIX.1-2001) that a reader needs: the name and the
/// size of the next member.
///
/// @param path the member's name, which replaces that of its header
/// @param size the member's size in bytes, which replaces that of its header
/// @param isSparse whether the member is a sparse file
record PaxRecords(Optional<String> path, OptionalLong size, boolean isSparse) {
  static final PaxRecords NONE = new PaxRecords(Optional.empty(), OptionalLong.empty(), false);

  private static final String SPARSE = "GNU.sparse.";

  /// The most digits of a record's length. More digits cannot be right, since records are in
  /// memory.
  private static final int MAX_LENGTH_DIGITS = 9;

  /// The most digits of a size of up to 2⁶³ - 1.
  private static final int MAX_SIZE_DIGITS = 19;

  /// Whether the records say nothing about the next member.
  boolean isEmpty() {
    return equals(NONE);
  }

  /// Parses records such as `30 path=name\n`, whose first number is the record's length. Zero bytes may
  /// follow the last one.
  ///
  /// @throws IllegalArgumentException if the bytes are no such records, with the reason
  static PaxRecords parse(byte[] bytes) {
    Optional<String> path = Optional.empty();
    OptionalLong size = OptionalLong.empty();
    boolean sparse = false;
    for (int at = 0; at < bytes.length && bytes[at] != 0; ) {
      int space = end(bytes, at, Math.min(bytes.length, at + MAX_LENGTH_DIGITS + 1), ' ');
      long length = number(bytes, at, space);
      if (length <= space - at || length > bytes.length - at) {
        throw new IllegalArgumentException("a record's length is " + length);
      }
      int end = at + (int) length;
      int equals = end(bytes, space + 1, end, '=');
      if (bytes[end - 1] != '\n' || equals == end) {
        throw new IllegalArgumentException("a record is not of the form KEY=VALUE");
      }
      String key = new String(bytes, space + 1, equals - space - 1, StandardCharsets.UTF_8);
      if (key.equals("path")) {
        String value = TarHeader.text(Arrays.copyOfRange(bytes, equals + 1, end - 1));
        path = Optional.of(value).filter(name -> !name.isEmpty());
      } else if (key.equals("size")) {
        size =
            equals + 1 == end - 1
                ? OptionalLong.empty()
                : OptionalLong.of(number(bytes, equals + 1, end - 1));
      }
      sparse |= key.startsWith(SPARSE);
      at = end;
    }
    return new PaxRecords(path, size, sparse);
  }

  /// Returns the index of the first wanted byte from `from` on; `limit` if there is none before
  /// `limit`.
  private static int end(byte[] bytes, int from, int limit, char wanted) {
    int at = from;
    while (at < limit && bytes[at] != wanted) {
      at++;
    }
    return at;
  }

  private static long number(byte[] bytes, int from, int to) {
    boolean digits = to > from && to - from <= MAX_SIZE_DIGITS;
    long number = 0;
    for (int i = from; i < to && digits; i++) {
      digits = bytes[i] >= '0' && bytes[i] <= '9' && number <= (Long.MAX_VALUE - 9) / 10;
      number = number * 10 + bytes[i] - '0';
    }
    if (!digits) {
      throw new IllegalArgumentException("a length or size is not a number");
    }
    return number;
  }
}
