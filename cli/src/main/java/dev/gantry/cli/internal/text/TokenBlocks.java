// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.shards.ShardWriter;
import java.lang.foreign.MemorySegment;
import java.util.Map;

/// Packs tokens into blocks of one length. A text begins where the previous one ends, even in the
/// middle of a block.
final class TokenBlocks {
  private static final int MAX_U16 = 0xFFFF;

  private final ShardWriter writer;
  private final TokenOptions options;
  private final int end;
  private final int[] block;
  private int filled;
  private long written;

  /// @param end the id of the token that is put after each text
  TokenBlocks(ShardWriter writer, TokenOptions options, int end) {
    this.writer = writer;
    this.options = options;
    this.end = end;
    block = new int[options.length()];
  }

  /// Adds a text's tokens.
  void add(long[] tokens) {
    for (long token : tokens) {
      put(Math.toIntExact(token));
    }
    put(end);
  }

  /// Pads the last block, or drops it, as the options say.
  void finish() {
    while (filled > 0 && options.padded()) {
      put(end);
    }
  }

  /// How many blocks were written.
  long written() {
    return written;
  }

  /// Returns how many tokens are in the last block, which is not full.
  int left() {
    return filled;
  }

  private void put(int token) {
    if (options.dtype() == DType.U16 && token > MAX_U16) {
      throw new MisuseException("the token " + token + " does not fit into U16; leave out --u16");
    }
    block[filled++] = token;
    if (filled == block.length) {
      writer.append(Map.of("tokens", values()));
      written++;
      filled = 0;
    }
  }

  private MemorySegment values() {
    if (options.dtype() != DType.U16) {
      return MemorySegment.ofArray(block);
    }
    char[] narrow = new char[block.length];
    for (int i = 0; i < narrow.length; i++) {
      narrow[i] = (char) block[i];
    }
    return MemorySegment.ofArray(narrow);
  }
}
