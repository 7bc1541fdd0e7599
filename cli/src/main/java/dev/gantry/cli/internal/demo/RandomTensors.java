// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import dev.gantry.cli.internal.digest.Digests;
import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.SplittableRandom;

/// Makes tensors of random bits, and digests them. Each is a window on the same memory, and begins
/// a little later than the one before: so no two are the same, and all of them take little more
/// memory than the largest. For one thread.
final class RandomTensors {
  private final MemorySegment bits;
  private final Map<String, String> digests = new HashMap<>();
  private long next;

  /// @param arena which owns the tensors' bytes
  /// @param largest the most bytes of one tensor
  /// @param count how many there can be
  RandomTensors(Arena arena, long seed, long largest, long count) {
    long words = largest / Long.BYTES + 1 + count;
    bits = arena.allocate(words * Long.BYTES, Long.BYTES);
    SplittableRandom random = new SplittableRandom(seed);
    for (long word = 0; word < words; word++) {
      bits.setAtIndex(ValueLayout.JAVA_LONG, word, random.nextLong());
    }
  }

  NewTensor make(String name, DType dtype, long... shape) {
    TensorShape dimensions = TensorShape.of(shape);
    long bytes = dimensions.elements().orElseThrow() * dtype.bits() / Byte.SIZE;
    MemorySegment window = bits.asSlice(next, bytes);
    next += Long.BYTES;
    MessageDigest sha256 = Digests.sha256();
    sha256.update(window.asByteBuffer());
    digests.put(name, HexFormat.of().formatHex(sha256.digest()));
    return new NewTensor(name, dtype, dimensions, new Memory.OnHost(window));
  }

  /// SHA-256 in lower-case hexadecimal by name, of all that were made.
  Map<String, String> digests() {
    return Map.copyOf(digests);
  }
}
