// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.ndarray.ArrayMemory;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Presents NDArrays of any dtype and device to the writers of shards: [#fields] and [#values] are
/// arguments for a [ShardWriter][dev.gantry.formats.shards.ShardWriter]. A [WeightsWriter] accepts
/// the arrays themselves.
///
/// The bytes are the arrays' own memory; only an array that is not dense in C order is copied. The
/// memory stays allocated until [#close], even if the arrays are closed before. The arrays must
/// not change while a writer reads them. Close the instance after the write. Thread-safe.
public final class ArraySources implements AutoCloseable {
  private final SequencedMap<String, ArrayMemory> memories = new LinkedHashMap<>();

  private ArraySources() {}

  /// Takes arrays under their own names.
  ///
  /// @throws MisuseException if an array has no name, or two have the same one; also as [#of(Map)]
  public static ArraySources of(NDList arrays) {
    MisuseException.requireGiven("arrays", arrays);
    SequencedMap<String, NDArray> byName = new LinkedHashMap<>();
    for (NDArray array : arrays) {
      String name = array.getName();
      if (name == null || name.isEmpty()) {
        throw new MisuseException(
            "array " + byName.size() + " of the list has no name; NDArray.setName gives it one");
      }
      if (byName.put(name, array) != null) {
        throw new MisuseException("two arrays of the list have the name '" + name + "'");
      }
    }
    return of(byName);
  }

  /// Takes arrays under the names of the map, in its order.
  ///
  /// @throws MisuseException if an array is sparse, of strings, of a type that
  ///     [DType][dev.gantry.core.DType] does not have, or of another engine
  public static ArraySources of(Map<String, NDArray> arrays) {
    MisuseException.requireGiven("arrays", arrays);
    ArraySources sources = new ArraySources();
    Cleanup.orUndo(
        () ->
            arrays.forEach((name, array) ->
                sources.memories.put(name, ArrayMemory.named(name, array, ArrayMemory::of))),
        sources::close);
    return sources;
  }

  /// Returns the arrays as tensors for a writer of weights.
  List<NewTensor> tensors() {
    List<NewTensor> tensors = new ArrayList<>(memories.size());
    memories.forEach((name, memory) ->
        tensors.add(new NewTensor(name, memory.dtype(), memory.shape(), memory.memory())));
    return tensors;
  }

  /// Returns the arrays as fields of a shard's samples: the first axis of each array counts the samples.
  ///
  /// @throws MisuseException if an array is a scalar
  public List<Field> fields() {
    List<Field> fields = new ArrayList<>(memories.size());
    memories.forEach((name, memory) -> {
      long[] dimensions = rows(name, memory).toArray();
      long[] sample = new long[dimensions.length - 1];
      System.arraycopy(dimensions, 1, sample, 0, sample.length);
      fields.add(new Field(name, memory.dtype(), TensorShape.of(sample)));
    });
    return fields;
  }

  /// How many samples there are.
  ///
  /// @throws MisuseException if an array is a scalar, or has another number of rows than the first
  public long samples() {
    long samples = 0;
    String first = "";
    for (Map.Entry<String, ArrayMemory> entry : memories.entrySet()) {
      long rows = rows(entry.getKey(), entry.getValue()).dimension(0);
      if (first.isEmpty()) {
        first = entry.getKey();
        samples = rows;
      } else if (rows != samples) {
        throw new MisuseException(
            "'" + entry.getKey() + "' has " + rows + " samples, and '" + first + "' " + samples);
      }
    }
    return samples;
  }

  private static TensorShape rows(String name, ArrayMemory memory) {
    if (memory.shape().rank() == 0) {
      throw new MisuseException("'" + name + "' is a scalar, and has no axis of samples");
    }
    return memory.shape();
  }

  /// The bytes of each array by its name.
  public SequencedMap<String, Source> values() {
    SequencedMap<String, Source> values = new LinkedHashMap<>();
    memories.forEach((name, memory) -> values.put(name, memory.memory()));
    return Collections.unmodifiableSequencedMap(values);
  }

  /// Releases the arrays' memory. Closing twice does nothing.
  @Override
  public void close() {
    Cleanup.forEach(memories.values(), ArrayMemory::close);
  }
}
