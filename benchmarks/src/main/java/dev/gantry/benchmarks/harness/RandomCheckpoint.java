// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Locale;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;

/// Makes safetensors files of random bytes. The bytes cannot be compressed and no two blocks are
/// equal, so they are as hard for a disk or a file system as real weights.
public final class RandomCheckpoint {
  private static final int CHUNK_BYTES = 8 << 20;

  private RandomCheckpoint() {}

  /// A tensor to make.
  ///
  /// @param bits turns eight random bytes into eight bytes of the tensor
  public record Tensor(String name, String dtype, List<Long> shape, LongUnaryOperator bits) {
    public Tensor {
      shape = List.copyOf(shape);
    }

    public long bytes() {
      long elements = shape.stream().reduce(1L, Math::multiplyExact);
      return elements
          * switch (dtype) {
            case "F32" -> 4;
            case "BF16" -> 2;
            case "F8_E4M3" -> 1;
            default -> throw new IllegalArgumentException(dtype);
          };
    }
  }

  private static final LongUnaryOperator ANY = LongUnaryOperator.identity();

  /// Tensors of equal size, a multiple of 4 bytes each, that make up at most `bytes` together; on
  /// disk when this returns.
  ///
  /// @param dtype `BF16` or `F32`
  /// @return the bytes of all tensors
  public static long make(Path file, long bytes, int tensors, String dtype) throws IOException {
    long elements = (bytes / tensors & -4) / (dtype.equals("F32") ? 4 : 2);
    return make(
        file,
        8,
        IntStream.range(0, tensors)
            .mapToObj(
                i -> new Tensor("model.layers." + i + ".weight", dtype, List.of(elements), ANY))
            .toList());
  }

  /// These tensors, on disk when this returns.
  ///
  /// @param alignment of the first one's bytes in the file, a power of 2 of at least 8
  /// @return the bytes of all tensors
  public static long make(Path file, int alignment, List<Tensor> tensors) throws IOException {
    StringBuilder header = new StringBuilder();
    long end = 0;
    for (Tensor tensor : tensors) {
      header
          .append(header.isEmpty() ? '{' : ',')
          .append(
              String.format(
                  Locale.ROOT,
                  "\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}",
                  tensor.name(),
                  tensor.dtype(),
                  tensor.shape(),
                  end,
                  end + tensor.bytes()));
      end += tensor.bytes();
    }
    header.append('}');
    header.append(" ".repeat(Math.floorMod(-header.length() - Long.BYTES, alignment)));
    try (FileChannel channel =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      byte[] text = header.toString().getBytes(StandardCharsets.US_ASCII);
      ByteBuffer start = ByteBuffer.allocate(8 + text.length).order(ByteOrder.LITTLE_ENDIAN);
      write(channel, start.putLong(text.length).put(text).flip());
      long state = end ^ 0x9E3779B97F4A7C15L;
      // Neighbours of the same kind are written as one.
      for (int i = 0; i < tensors.size(); ) {
        LongUnaryOperator bits = tensors.get(i).bits();
        long bytes = 0;
        for (; i < tensors.size() && tensors.get(i).bits().equals(bits); i++) {
          bytes += tensors.get(i).bytes();
        }
        state = writeRandom(channel, bytes, bits, state);
      }
      channel.force(true);
    }
    return end;
  }

  private static long writeRandom(
      FileChannel channel, long bytes, LongUnaryOperator bits, long begin) throws IOException {
    ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    long state = begin;
    for (long left = bytes; left > 0; left -= chunk.limit()) {
      chunk.clear();
      state = fill(chunk, bits, state);
      chunk.limit((int) Math.min(CHUNK_BYTES, left));
      write(channel, chunk);
    }
    return state;
  }

  /// Fills a buffer, whose size is a multiple of 8.
  ///
  /// @return the generator's state, with which the next call continues
  static long fill(ByteBuffer buffer, LongUnaryOperator bits, long state) {
    long next = state;
    for (int i = 0; i < buffer.limit(); i += Long.BYTES) {
      // xorshift64: G. Marsaglia, Xorshift RNGs, 2003.
      next ^= next << 13;
      next ^= next >>> 7;
      next ^= next << 17;
      buffer.putLong(i, bits.applyAsLong(next));
    }
    return next;
  }

  private static void write(FileChannel channel, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }
}
