// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.djl.internal.weights.LoadPart.Piece;
import java.util.List;

/// How much memory a pipelined load takes whose arrays change their types, without what readers take and what DJL's
/// engine makes: both are asked for when they are needed.
final class PartsMemory {
  private PartsMemory() {}

  /// The most bytes at once: two parts are in memory at a time, beside the results of those before.
  ///
  /// @param kept bytes that stay from before the first part to behind the last
  /// @param lazy whether tensors are mapped, which takes nothing
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
          // The engine makes another array of FLOAT64.
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
