// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;

/// Tensors that fit into a slab together: what a load has in memory at a time, beside its results.
///
/// @param pieces of each device; each device has the same number
record LoadPart(List<List<Piece>> pieces) {
  /// Some rows of a tensor, or all of it.
  ///
  /// @param rows has the tensor's name
  /// @param first the number of the first row
  record Piece(TensorRequest rows, long first) {}

  static List<Piece> whole(List<TensorRequest> requests) {
    return requests.stream().map(request -> new Piece(request, 0)).toList();
  }

  /// @param pieces of each device
  /// @param memory how many bytes a piece takes on the first device while it is used
  static List<LoadPart> of(
      List<List<Piece>> pieces, long slabBytes, ToLongFunction<TensorRequest> memory) {
    List<LoadPart> parts = new ArrayList<>();
    int size = pieces.getFirst().size();
    int begin = 0;
    while (begin < size) {
      long room = slabBytes;
      int end = begin;
      // A piece that is larger than a slab is a part of its own.
      while (end == begin || (end < size && bytes(pieces, end, memory) <= room)) {
        room -= bytes(pieces, end, memory);
        end++;
      }
      int from = begin;
      int to = end;
      parts.add(new LoadPart(pieces.stream().map(each -> each.subList(from, to)).toList()));
      begin = end;
    }
    return parts;
  }

  private static long bytes(
      List<List<Piece>> pieces, int place, ToLongFunction<TensorRequest> memory) {
    return memory.applyAsLong(pieces.getFirst().get(place).rows());
  }

  /// The tensors of each device.
  List<List<StoredTensor>> tensors() {
    return pieces.stream()
        .map(each -> each.stream().map(piece -> piece.rows().tensor()).toList())
        .toList();
  }

  /// How many bytes are read for this part.
  ///
  /// @param replicated whether all devices have the same
  long bytes(boolean replicated) {
    return tensors().stream()
        .limit(replicated ? 1 : pieces.size())
        .flatMap(List::stream)
        .mapToLong(StoredTensor::bytes)
        .sum();
  }
}
