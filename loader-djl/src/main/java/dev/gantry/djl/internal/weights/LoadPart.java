// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;

/// Tensors that fit into a slab together. A load that converts has a few parts in memory at a
/// time, besides its results.
///
/// @param requests the requests of each device; all devices have the same number of requests
record LoadPart(List<List<TensorRequest>> requests) {
  /// @param requests the requests of each device
  /// @param firstBytes how many bytes the first part takes at most
  /// @param slabBytes how many bytes each other part takes at most
  /// @param memory how many bytes a tensor takes on the first device while it is used
  static List<LoadPart> of(
      List<List<TensorRequest>> requests,
      long firstBytes,
      long slabBytes,
      ToLongFunction<TensorRequest> memory) {
    List<LoadPart> parts = new ArrayList<>();
    List<TensorRequest> first = requests.getFirst();
    int begin = 0;
    long bytes = 0;
    long room = firstBytes;
    for (int i = 0; i < first.size(); i++) {
      long more = memory.applyAsLong(first.get(i));
      // A tensor that is larger than a slab becomes a part of its own.
      if (i > begin && bytes + more > room) {
        parts.add(part(requests, begin, i));
        begin = i;
        bytes = 0;
        room = slabBytes;
      }
      bytes += more;
    }
    if (begin < first.size()) {
      parts.add(part(requests, begin, first.size()));
    }
    return parts;
  }

  private static LoadPart part(List<List<TensorRequest>> requests, int from, int to) {
    return new LoadPart(requests.stream().map(each -> each.subList(from, to)).toList());
  }

  /// The stored tensors of each device.
  List<List<StoredTensor>> tensors() {
    return requests.stream()
        .map(each -> each.stream().flatMap(request -> request.inputs().stream()).toList())
        .toList();
  }

  /// How many bytes are read for this part.
  ///
  /// @param replicated whether all devices load the same tensors
  long bytes(boolean replicated) {
    return requests.stream()
        .limit(replicated ? 1 : requests.size())
        .flatMap(List::stream)
        .mapToLong(TensorRequest::readBytes)
        .sum();
  }
}
