// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.spi;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The keys and values that a model's attention has computed for the tokens so far, so that the next
/// token costs one position and not all of them. They are written in place, into arrays with room for more. For one text
/// or one batch, and one thread.
public final class KeyValueCache implements AutoCloseable {
  /// The keys and values of one layer, `[batch, heads, capacity, head size]` each, of which the
  /// first `length` tokens count.
  private static final class Layer {
    private NDArray keys;
    private NDArray values;
    private long length;

    Layer(NDArray keys, NDArray values) {
      this.keys = keys;
      this.values = values;
    }
  }

  private final NDManager manager;
  private final long[] padding;
  private final @Nullable NDArray starts;
  private final List<Layer> layers = new ArrayList<>();
  private long reserved = 64;
  private long expected;

  /// An empty cache, whose arrays belong to a manager of its own below `parent`.
  public KeyValueCache(NDManager parent) {
    this(parent, new long[1]);
  }

  /// An empty cache of a batch.
  ///
  /// @param padding how many tokens before each text are none
  public KeyValueCache(NDManager parent, long... padding) {
    manager = parent.newSubManager();
    this.padding = padding.clone();
    boolean some = Arrays.stream(padding).anyMatch(count -> count > 0);
    starts = some ? manager.create(padding, new Shape(padding.length, 1)) : null;
  }

  /// How many tokens it holds, padding included.
  public long length() {
    return layers.isEmpty() ? 0 : layers.getFirst().length;
  }

  /// How many tokens each text has so far, and thus the position of its next one; one number if that is the same for all.
  /// It is below 0 while padding comes.
  public long[] positions() {
    long length = length();
    return starts == null
        ? new long[] {length}
        : Arrays.stream(padding).map(count -> length - count).toArray();
  }

  /// Says which of the first `all` tokens are some, `[batch, all]`.
  ///
  /// @return null if all are
  public @Nullable NDArray mask(NDManager pass, long all) {
    return starts == null
        ? null
        : pass.arange(0, (int) all, 1, starts.getDataType()).reshape(1, all).gte(starts);
  }

  /// Makes room for so many tokens at once, instead of twice as many each time that the room is used up.
  public void reserve(long tokens) {
    reserved = Math.max(reserved, tokens);
  }

  /// Says how many tokens there will be when those that come now in pieces are all there: a rotary embedding may depend on
  /// it.
  public void expect(long tokens) {
    expected = tokens;
  }

  public long expected() {
    return expected;
  }

  /// Forgets the tokens behind the first `length`.
  ///
  /// @throws MisuseException if it holds fewer
  public void truncate(long length) {
    MisuseException.requireRange("length of a cache to keep", length, 0, length());
    layers.forEach(layer -> layer.length = Math.min(length, layer.length));
  }

  /// Adds the keys and values of new tokens.
  ///
  /// @param layer layers come in their order, from 0
  /// @param key `[batch, heads, new tokens, head size]`, as `value`
  /// @return the keys and values of all tokens: views of the cache's arrays
  public NDList append(int layer, NDArray key, NDArray value) {
    if (layer == layers.size()) {
      long room = Math.max(reserved, key.getShape().get(2));
      layers.add(new Layer(room(key, room), room(value, room)));
    }
    Layer whole = layers.get(layer);
    long past = whole.length;
    long all = past + key.getShape().get(2);
    long capacity = whole.keys.getShape().get(2);
    if (all > capacity) {
      long room = Math.max(Math.max(reserved, all), 2 * capacity);
      whole.keys = grown(whole.keys, past, room);
      whole.values = grown(whole.values, past, room);
    }
    whole.keys.set(tokens(past, all), key);
    whole.values.set(tokens(past, all), value);
    whole.length = all;
    return new NDList(whole.keys.get(tokens(0, all)), whole.values.get(tokens(0, all)));
  }

  private static NDIndex tokens(long from, long to) {
    return new NDIndex().addAllDim(2).addSliceDim(from, to).addAllDim();
  }

  private NDArray grown(NDArray before, long length, long room) {
    try (before) {
      NDArray after = room(before, room);
      after.set(tokens(0, length), before.get(tokens(0, length)));
      return after;
    }
  }

  /// An array for `tokens` tokens of the type of `like`. A copy of a token that is repeated has any type, BFLOAT16
  /// included, which DJL cannot create.
  private NDArray room(NDArray like, long tokens) {
    Shape shape = like.getShape();
    NDArray room =
        like.get(tokens(0, 1))
            .broadcast(shape.get(0), shape.get(1), tokens, shape.get(3))
            .duplicate();
    // Neither the scope nor the manager of the pass shall close it.
    NDScope.unregister(room);
    room.attach(manager);
    return room;
  }

  /// Frees the arrays.
  @Override
  public void close() {
    manager.close();
  }
}
