// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.index.NDIndex;
import java.security.MessageDigest;
import java.util.HexFormat;

/// SHA-256 of what an array holds, read from where it lives: in place on the CPU, piece by piece
/// from a GPU.
public final class ArrayDigest {
  private static final long PIECE_BYTES = 4 << 20;

  private ArrayDigest() {}

  /// Lower-case hexadecimal.
  public static String of(NDArray array) {
    MessageDigest sha256 = Digests.sha256();
    long pieceElements = PIECE_BYTES / array.getDataType().getNumOfBytes();
    try (NDArray flat = array.flatten()) {
      for (long from = 0; from < flat.size(); from += pieceElements) {
        long to = Math.min(from + pieceElements, flat.size());
        try (NDArray piece = flat.get(new NDIndex().addSliceDim(from, to))) {
          sha256.update(piece.toByteBuffer(true));
        }
      }
    }
    return HexFormat.of().formatHex(sha256.digest());
  }
}
