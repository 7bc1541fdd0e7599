// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.djl.internal.weights.LoadPart.Piece;
import java.util.List;

/// Computes how much memory a pipelined load takes whose arrays change their types. It leaves out the buffers
/// of readers and the arrays that DJL's engine makes: both are asked for when they are needed.
final class PartsMemory {
  private PartsMemory() {}

  /// The most bytes at once: two parts are in memory at a time, beside the results of those before.
  ///
  /// @param kept bytes that stay from before the first part to behind the last
  /// @param lazy whether tensors are mapped, which takes no memory
  /// @param partBytes the least that a part takes
  static long most(List<LoadPart> parts, long kept, boolean lazy, long partBytes) {
    long most = kept;
    long stayed = kept;
    for (int i = 0; i < parts.size(); i++) {
      List<Piece> part = parts.get(i).pieces().getFirst();
      long loaded = lazy ? 0 : loaded(part, partBytes);
      long next =
          lazy || i + 1 == parts.size()
              ? 0
              : loaded(parts.get(i + 1).pieces().getFirst(), partBytes);
      long results = 0;
      boolean resultsStay = false;
      boolean loadedStays = false;
      for (Piece piece : part) {
        TensorRequest request = piece.rows();
        if (request.isConverted()) {
          results = TypeChanges.endOf(results, request);
          // A conversion to FLOAT64 leaves no result here: the engine casts it to another array.
          resultsStay |= !request.isDouble();
        }
        loadedStays |= !request.changes();
      }
      most = Math.max(most, stayed + loaded + results + next);
      stayed += (loadedStays ? loaded : 0) + (resultsStay ? results : 0);
    }
    return most;
  }

  private static long loaded(List<Piece> part, long leastBytes) {
    return Math.max(
        leastBytes, part.stream().mapToLong(piece -> piece.rows().tensor().bytes()).sum());
  }
}
