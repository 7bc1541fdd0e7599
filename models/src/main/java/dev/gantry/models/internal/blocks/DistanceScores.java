// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.models.internal.blocks.Description.Distances;
import dev.gantry.models.internal.blocks.NamedBlock.Dense;
import dev.gantry.models.internal.blocks.NamedBlock.Pass;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The terms that DeBERTa adds to the scores of attention by the distance of two tokens: the
/// product of a query and the distance's key, and that of a key and the distance's query.
///
/// @param table `[1, distances, width]`
/// @param places of the distances in the table, from each query to each key, `[1, 1, length, length]`
public record DistanceScores(NDArray table, NDArray places) {
  /// @param table `[distances, width]`
  public static DistanceScores of(Distances kind, NDArray table, int length, NDManager manager) {
    long[] places = new long[Math.multiplyExact(length, length)];
    int span = kind.span();
    for (int i = 0; i < places.length; i++) {
      int place = distance(kind, i / length - i % length) + span;
      places[i] = Math.clamp(place, 0, 2 * span - 1);
    }
    return new DistanceScores(
        table.expandDims(0), manager.create(places, new Shape(1, 1, length, length)));
  }

  /// A distance as it counts: far ones share, the farther the more.
  private static int distance(Distances kind, int distance) {
    int near = kind.buckets() / 2;
    int size = Math.abs(distance);
    if (kind.buckets() == 0 || size <= near) {
      return distance;
    }
    // In 32 bits, as the reference computes it.
    float share =
        (float) Math.log((float) size / near)
            / (float) Math.log((float) ((kind.farthest() - 1.0) / near))
            * (near - 1);
    return Integer.signum(distance) * ((int) Math.ceil(share) + near);
  }

  /// @param query `[batch, heads, length, size]`, as `key`
  /// @param forKeys makes the distances' keys; null where they have none
  /// @param forQueries makes the distances' queries; null where they have none
  /// @return `[batch, heads, length, length]`
  public NDArray scores(
      NDArray query, NDArray key, @Nullable Dense forKeys, @Nullable Dense forQueries, Pass pass) {
    NDArray sum = null;
    if (forKeys != null) {
      sum = chosen(query, forKeys, places, pass);
    }
    if (forQueries != null) {
      NDArray asked =
          chosen(key, forQueries, places.transpose(0, 1, 3, 2), pass).transpose(0, 1, 3, 2);
      sum = sum == null ? asked : sum.add(asked);
    }
    return Objects.requireNonNull(sum, "distances have keys, queries or both");
  }

  private NDArray chosen(NDArray heads, Dense dense, NDArray from, Pass pass) {
    Shape shape = heads.getShape();
    NDArray others = Attention.heads(dense.of(table, pass), (int) shape.get(1));
    return heads
        .matMul(others.transpose(0, 1, 3, 2))
        .gather(from.broadcast(shape.get(0), shape.get(1), shape.get(2), shape.get(2)), 3);
  }
}
