// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import java.util.ArrayList;
import java.util.List;

/// The keys and values that a model's attention has computed for the tokens so far, so that the next
/// token costs one position and not all of them. For one text or one batch, and one thread.
public final class KeyValueCache implements AutoCloseable {
  private final NDManager manager;
  private final List<NDList> layers = new ArrayList<>();

  /// An empty cache, whose arrays belong to a manager of its own below `parent`.
  public KeyValueCache(NDManager parent) {
    manager = parent.newSubManager();
  }

  /// How many tokens it holds.
  public long length() {
    return layers.isEmpty() ? 0 : layers.getFirst().head().getShape().get(2);
  }

  /// Adds the keys and values of new tokens.
  ///
  /// @param layer layers come in their order, from 0
  /// @param key `[batch, heads, new tokens, head size]`, as `value`
  /// @return the keys and values of all tokens, which stay the cache's
  public NDList append(int layer, NDArray key, NDArray value) {
    if (layer == layers.size()) {
      layers.add(new NDList(keep(key), keep(value)));
    } else {
      NDList before = layers.get(layer);
      NDList after = new NDList(joined(before.get(0), key), joined(before.get(1), value));
      layers.set(layer, after);
      before.close();
    }
    return layers.get(layer);
  }

  private NDArray joined(NDArray before, NDArray added) {
    return keep(NDArrays.concat(new NDList(before, added), 2));
  }

  /// Takes an array over, so that neither the scope nor the manager of the pass that made it closes it.
  private NDArray keep(NDArray array) {
    NDScope.unregister(array);
    array.attach(manager);
    return array;
  }

  /// Frees the arrays.
  @Override
  public void close() {
    manager.close();
  }
}
