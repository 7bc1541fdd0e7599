// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.spi;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The keys and values that a model's attention has computed for the tokens so far. With them, a
/// new token costs the computation of one position instead of all. They are written into
/// preallocated arrays, in place. A cache serves one text, or one batch of texts. Not thread-safe.
public final class KeyValueCache implements AutoCloseable {
  /// The keys and values of one layer, `[batch, heads, capacity, head size]` each. The first
  /// `length` tokens are filled.
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

  /// Makes an empty cache for one text. Its arrays belong to a submanager of `parent`.
  public KeyValueCache(NDManager parent) {
    this(parent, new long[1]);
  }

  /// Makes an empty cache for a batch of texts. Its arrays belong to a submanager of `parent`.
  ///
  /// @param padding for each text, how many padding tokens come before it
  public KeyValueCache(NDManager parent, long... padding) {
    manager = parent.newSubManager();
    this.padding = padding.clone();
    boolean some = Arrays.stream(padding).anyMatch(count -> count > 0);
    starts = some ? manager.create(padding, new Shape(padding.length, 1)) : null;
  }

  /// Returns how many tokens per text the cache holds, padding included.
  public long length() {
    return layers.isEmpty() ? 0 : layers.getFirst().length;
  }

  /// Returns how many tokens of each text the cache holds, without padding, which is the position
  /// of the text's next token. If no text is padded, this is one number for all texts. A number
  /// below 0 counts the padding tokens that are still to come.
  public long[] positions() {
    long length = length();
    return starts == null
        ? new long[] {length}
        : Arrays.stream(padding).map(count -> length - count).toArray();
  }

  /// Says which of the first `all` tokens are not padding, as booleans `[batch, all]`.
  ///
  /// @return null if no token is padding
  public @Nullable NDArray mask(NDManager pass, long all) {
    return starts == null
        ? null
        : pass.arange(0, (int) all, 1, starts.getDataType()).reshape(1, all).gte(starts);
  }

  /// Sets the least capacity in tokens of the arrays. Without this, they begin with 64 tokens and
  /// double when they are full.
  public void reserve(long tokens) {
    reserved = Math.max(reserved, tokens);
  }

  /// Sets how many tokens there will be after the last piece of a prompt that is fed in pieces. A
  /// rotary embedding may depend on this number.
  public void expect(long tokens) {
    expected = tokens;
  }

  public long expected() {
    return expected;
  }

  /// Drops the tokens after the first `length`.
  ///
  /// @throws MisuseException if the cache holds fewer than `length` tokens
  public void truncate(long length) {
    MisuseException.requireRange("length of a cache to keep", length, 0, length());
    layers.forEach(layer -> layer.length = Math.min(length, layer.length));
  }

  /// Appends the keys and values of new tokens.
  ///
  /// @param layer the layer's number, from 0; layers must be appended in their order
  /// @param key `[batch, heads, new tokens, head size]`; `value` has the same shape
  /// @return the keys and the values of all tokens, as views of the cache's arrays
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
      NDArray keys = grown(whole.keys, past, room);
      NDArray values = Cleanup.orUndo(() -> grown(whole.values, past, room), keys::close);
      whole.keys.close();
      whole.values.close();
      whole.keys = keys;
      whole.values = values;
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
    NDArray after = room(before, room);
    after.set(tokens(0, length), before.get(tokens(0, length)));
    return after;
  }

  /// Allocates an array for `tokens` tokens of the type of `like`. It repeats one token of `like`,
  /// because DJL cannot create an array of every type, such as BFLOAT16.
  private NDArray room(NDArray like, long tokens) {
    Shape shape = like.getShape();
    NDArray room =
        like.get(tokens(0, 1))
            .broadcast(shape.get(0), shape.get(1), tokens, shape.get(3))
            .duplicate();
    // Neither the scope nor the manager of the pass may close the array.
    NDScope.unregister(room);
    room.attach(manager);
    return room;
  }

  /// Frees the arrays. Idempotent.
  @Override
  public void close() {
    manager.close();
  }
}
