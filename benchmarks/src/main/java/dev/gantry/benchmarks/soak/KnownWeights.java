// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.benchmarks.harness.RandomCheckpoint.Tensor;
import dev.gantry.benchmarks.harness.WrongBytesException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.function.LongUnaryOperator;

/// A safetensors file of random numbers whose bytes are also in memory, for comparison.
final class KnownWeights {
  /// The prefix of the names of all tensors whose sizes along both axes are multiples of 4.
  static final String MATRIX = "layers.";

  private static final int MATRICES = 10;

  /// A tensor, and where its bytes are.
  record Part(String dtype, List<Long> shape, int offset, int length) {
    int rows() {
      return Math.toIntExact(shape.getFirst());
    }
  }

  private final Path file;
  private final byte[] bytes;
  private final SequencedMap<String, Part> parts;

  private KnownWeights(Path file, byte[] bytes, SequencedMap<String, Part> parts) {
    this.file = file;
    this.bytes = bytes;
    this.parts = parts;
  }

  static KnownWeights make(Path file) throws IOException {
    // Clears the highest bit of each exponent, so that no number is NaN or infinite and
    // conversions keep all bits.
    LongUnaryOperator finite = bits -> bits & 0xBFFF_BFFF_BFFF_BFFFL;
    List<Tensor> tensors = new ArrayList<>();
    for (int i = 0; i < MATRICES; i++) {
      boolean wide = i % 3 == 2;
      tensors.add(
          new Tensor(
              MATRIX + i + ".weight",
              wide ? "F32" : "BF16",
              List.of(wide ? 512L : 1024L, 1024L),
              finite));
      // The odd length has the effect that later tensors begin at unaligned offsets.
      tensors.add(new Tensor("bytes." + i, "F8_E4M3", List.of(333L + 2L * i), finite));
      tensors.add(new Tensor("norm." + i, "BF16", List.of(7L + i), finite));
    }
    long length = RandomCheckpoint.make(file, 8, tensors);
    byte[] bytes = Files.readAllBytes(file);
    SequencedMap<String, Part> parts = new LinkedHashMap<>();
    int offset = Math.toIntExact(bytes.length - length);
    for (Tensor tensor : tensors) {
      int size = Math.toIntExact(tensor.bytes());
      parts.put(tensor.name(), new Part(tensor.dtype(), tensor.shape(), offset, size));
      offset += size;
    }
    return new KnownWeights(file, bytes, parts);
  }

  Path file() {
    return file;
  }

  byte[] bytes() {
    return bytes;
  }

  SequencedMap<String, Part> parts() {
    return parts;
  }

  Part part(String name) {
    return Objects.requireNonNull(parts.get(name), name);
  }

  /// The bytes of a tensor.
  ByteBuffer expected(String name) {
    Part part = part(name);
    return ByteBuffer.wrap(bytes, part.offset(), part.length()).slice();
  }

  /// The bytes of rows of a tensor.
  ByteBuffer rows(String name, int from, int to) {
    Part part = part(name);
    int row = part.length() / part.rows();
    return expected(name).slice(from * row, (to - from) * row);
  }

  /// The bytes of a rank's columns of a matrix.
  ByteBuffer columns(String name, int rank, int world) {
    Part part = part(name);
    int row = part.length() / part.rows();
    int width = row / world;
    ByteBuffer all = ByteBuffer.allocate(part.length() / world);
    for (int i = 0; i < part.rows(); i++) {
      all.put(expected(name).slice(i * row + rank * width, width));
    }
    return all.flip();
  }

  /// Returns the numbers of a tensor as FLOAT32. A BF16 number is the upper half of a FLOAT32.
  ByteBuffer widened(String name) {
    if (!part(name).dtype().equals("BF16")) {
      return expected(name);
    }
    ByteBuffer narrow = expected(name).order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer wide = ByteBuffer.allocate(2 * narrow.limit()).order(ByteOrder.LITTLE_ENDIAN);
    while (narrow.hasRemaining()) {
      wide.putInt(narrow.getShort() << 16);
    }
    return wide.flip();
  }

  /// @return how many bytes were compared
  /// @throws WrongBytesException if a byte differs from the file's
  long verify(NDList arrays) {
    long verified = 0;
    for (NDArray array : arrays) {
      verified += verify(array, expected(array.getName()));
    }
    return verified;
  }

  static long verify(NDArray array, ByteBuffer expected) {
    return verify(array.getName(), array.toByteBuffer(), expected);
  }

  static long verify(String name, ByteBuffer found, ByteBuffer expected) {
    if (found.remaining() != expected.remaining()) {
      throw new WrongBytesException(
          "%s has %d bytes instead of %d".formatted(name, found.remaining(), expected.remaining()));
    }
    int at = expected.mismatch(found);
    if (at >= 0) {
      throw new WrongBytesException(
          "byte %d of %d of %s is %d instead of %d"
              .formatted(
                  at,
                  expected.remaining(),
                  name,
                  found.get(found.position() + at),
                  expected.get(expected.position() + at)));
    }
    return expected.remaining();
  }
}
