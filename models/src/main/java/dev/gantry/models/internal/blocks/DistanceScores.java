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

/// The terms that DeBERTa adds to attention scores by the distance of two tokens: the product of a
/// query with the distance's key, and the product of a key with the distance's query.
///
/// @param table the embeddings of the distances, `[1, distances, width]`
/// @param places the row of the table for each query and each key, `[1, 1, length, length]`
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

  /// Maps a distance to its bucket. Far distances share buckets, and a bucket is the wider the
  /// farther it is.
  private static int distance(Distances kind, int distance) {
    int near = kind.buckets() / 2;
    int size = Math.abs(distance);
    if (kind.buckets() == 0 || size <= near) {
      return distance;
    }
    // The bucket is computed in 32 bits, as in the reference.
    float share =
        (float) Math.log((float) size / near)
            / (float) Math.log((float) ((kind.farthest() - 1.0) / near))
            * (near - 1);
    return Integer.signum(distance) * ((int) Math.ceil(share) + near);
  }

  /// @param query `[batch, heads, length, size]`; `key` has the same shape
  /// @param forKeys computes the keys of distances; null if distances have no keys
  /// @param forQueries computes the queries of distances; null if distances have no queries
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
