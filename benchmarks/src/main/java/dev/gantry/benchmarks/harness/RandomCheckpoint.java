// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Locale;

/// Makes safetensors files of random bytes. The bytes cannot be compressed, and no block is like
/// another, so neither a disk nor a file system has it easier than with weights.
public final class RandomCheckpoint {
  private static final int CHUNK_BYTES = 8 << 20;

  private RandomCheckpoint() {}

  /// Tensors of equal size, a multiple of 4 bytes each, that make up at most `bytes` together; on
  /// disk when this returns.
  ///
  /// @param dtype `BF16` or `F32`
  /// @return the bytes of all tensors
  public static long make(Path file, long bytes, int tensors, String dtype) throws IOException {
    long tensorBytes = bytes / tensors & -4;
    long elements = tensorBytes / (dtype.equals("F32") ? 4 : 2);
    StringBuilder header = new StringBuilder("{");
    for (int i = 0; i < tensors; i++) {
      header.append(
          String.format(
              Locale.ROOT,
              "%s\"model.layers.%d.weight\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[%d,%d]}",
              i == 0 ? "" : ",",
              i,
              dtype,
              elements,
              i * tensorBytes,
              (i + 1) * tensorBytes));
    }
    header.append('}');
    while (header.length() % 8 != 0) {
      header.append(' ');
    }
    try (FileChannel channel =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      byte[] text = header.toString().getBytes(StandardCharsets.US_ASCII);
      ByteBuffer start = ByteBuffer.allocate(8 + text.length).order(ByteOrder.LITTLE_ENDIAN);
      write(channel, start.putLong(text.length).put(text).flip());
      writeRandom(channel, tensorBytes * tensors);
      channel.force(true);
    }
    return tensorBytes * tensors;
  }

  private static void writeRandom(FileChannel channel, long bytes) throws IOException {
    ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    long state = bytes ^ 0x9E3779B97F4A7C15L;
    for (long left = bytes; left > 0; left -= chunk.limit()) {
      chunk.clear();
      state = fill(chunk, state);
      chunk.limit((int) Math.min(CHUNK_BYTES, left));
      write(channel, chunk);
    }
  }

  /// Fills a buffer, whose size is a multiple of 8.
  ///
  /// @return the state to go on with
  static long fill(ByteBuffer buffer, long state) {
    long next = state;
    for (int i = 0; i < buffer.limit(); i += Long.BYTES) {
      // xorshift64: G. Marsaglia, Xorshift RNGs, 2003.
      next ^= next << 13;
      next ^= next >>> 7;
      next ^= next << 17;
      buffer.putLong(i, next);
    }
    return next;
  }

  public static void write(FileChannel channel, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }
}
