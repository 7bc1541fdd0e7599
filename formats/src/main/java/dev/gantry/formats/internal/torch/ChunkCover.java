// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.torch.DcpMetadata.Chunk;
import dev.gantry.formats.internal.torch.DcpMetadata.Tensor;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Checks that the chunks of each tensor fill the tensor and do not overlap. Not thread-safe.
final class ChunkCover {
  /// The most pairs of chunks that are compared. If a tensor is cut along one axis, each chunk
  /// needs one comparison.
  private static final long MAX_COMPARISONS = 50_000_000;

  private final Location metadata;
  private long comparisons;

  /// @param metadata the file that errors name
  ChunkCover(Location metadata) {
    this.metadata = metadata;
  }

  /// Requires that each element of a tensor is in exactly one chunk.
  void requireWhole(Tensor tensor) {
    long left = tensor.shape().elements().orElseThrow();
    List<Chunk> filled = new ArrayList<>();
    for (Chunk chunk : tensor.chunks()) {
      // A chunk is within its tensor, so its elements can be counted.
      long elements = chunk.shape().elements().orElseThrow();
      left -= elements;
      if (elements > 0) {
        filled.add(chunk);
      }
    }
    int sweep = sweepAxis(tensor, filled);
    if (sweep >= 0) {
      filled.sort(Comparator.comparingLong(chunk -> chunk.offsets().dimension(sweep)));
    }
    for (int i = 0; i < filled.size(); i++) {
      for (int j = i + 1; j < filled.size(); j++) {
        comparisons++;
        if (comparisons > MAX_COMPARISONS) {
          throw malformed("too-many-chunks", "chunks of '" + tensor.name() + "' lie too mixed");
        }
        if (sweep >= 0
            && filled.get(j).offsets().dimension(sweep)
                >= filled.get(i).offsets().dimension(sweep)
                    + filled.get(i).shape().dimension(sweep)) {
          break;
        }
        if (overlap(filled.get(i), filled.get(j))) {
          throw malformed("chunks-overlap", "two chunks of tensor '" + tensor.name() + "' overlap");
        }
      }
    }
    if (left != 0) {
      throw malformed(
          "missing-chunk", "the chunks of tensor '" + tensor.name() + "' do not fill it");
    }
  }

  /// Returns the axis along which the chunks begin at the most different indexes; -1 for a
  /// scalar.
  private static int sweepAxis(Tensor tensor, List<Chunk> chunks) {
    int best = -1;
    long most = 0;
    for (int each = 0; each < tensor.shape().rank(); each++) {
      int axis = each;
      long places =
          chunks.stream().mapToLong(chunk -> chunk.offsets().dimension(axis)).distinct().count();
      if (places > most) {
        best = axis;
        most = places;
      }
    }
    return best;
  }

  private static boolean overlap(Chunk one, Chunk other) {
    for (int axis = 0; axis < one.shape().rank(); axis++) {
      long from = Math.max(one.offsets().dimension(axis), other.offsets().dimension(axis));
      long to =
          Math.min(
              one.offsets().dimension(axis) + one.shape().dimension(axis),
              other.offsets().dimension(axis) + other.shape().dimension(axis));
      if (from >= to) {
        return false;
      }
    }
    return true;
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(metadata, 0, kind, detail);
  }
}
