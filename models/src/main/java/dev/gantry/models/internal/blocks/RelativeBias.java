// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import dev.gantry.models.internal.blocks.NamedBlock.Pass;

/// A learned bias of attention scores by the distance of two tokens, as in MPNet and T5's encoder.
/// Half of the buckets are for earlier tokens, half for later ones. Each near distance has its own
/// bucket; farther distances share buckets.
///
/// @param table `[buckets, heads]`
public record RelativeBias(Parameter table) {
  /// All distances from this one on share the last bucket.
  private static final int FARTHEST = 128;

  /// @return `[1, heads, length, length]`
  public NDArray of(long length, NDManager manager, Pass pass) {
    NDArray values = pass.value(table);
    int half = (int) (values.getShape().get(0) / 2);
    int size = Math.toIntExact(length);
    long[] buckets = new long[Math.toIntExact(length * length)];
    for (int i = 0; i < buckets.length; i++) {
      int distance = i % size - i / size;
      buckets[i] = bucket(Math.abs(distance), half) + (distance > 0 ? (long) half : 0);
    }
    return Attention.rows(values, manager.create(buckets, new Shape(size, size)))
        .transpose(2, 0, 1)
        .expandDims(0);
  }

  private static int bucket(int distance, int count) {
    int near = count / 2;
    if (distance < near) {
      return distance;
    }
    // The bucket is computed in 32 bits, as in the reference.
    float share =
        (float) Math.log((float) distance / near)
            / (float) Math.log((double) FARTHEST / near)
            * (count - near);
    return Math.min(near + (int) share, count - 1);
  }
}
