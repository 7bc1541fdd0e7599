// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/// The bytes of tensors as loads return them, for comparisons.
public final class TensorValues {
  private TensorValues() {}

  public static byte[] bytes(StoredTensor tensor) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(Math.max(1, tensor.bytes()));
      TensorReading.read(GantrySession.shared(), tensor, target.asSlice(0, tensor.bytes()));
      return target.asSlice(0, tensor.bytes()).toArray(ValueLayout.JAVA_BYTE);
    }
  }

  public static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
