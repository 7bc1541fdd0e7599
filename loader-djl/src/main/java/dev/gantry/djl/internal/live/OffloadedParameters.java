// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.live;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.pytorch.jni.JniUtils;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.session.OffloadBuffer;
import dev.gantry.djl.internal.ndarray.ArrayMemory;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.weights.NewArrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.SequencedSet;
import org.jspecify.annotations.Nullable;

/// The parameters of a block, whose values can be moved to host memory and back. Not thread-safe.
public final class OffloadedParameters implements AutoCloseable {
  /// The memory of one parameter, or of several parameters that are tied.
  private record Memory(long address, long bytes) {}

  /// Describes a parameter's closed array, so that [#restore] can make one like it.
  private record Away(
      NDManager manager, DType dtype, TensorShape shape, @Nullable String name, int piece) {}

  private final SequencedSet<Parameter> parameters;
  private final SequencedMap<Parameter, Away> away = new LinkedHashMap<>();
  private @Nullable OffloadBuffer buffer;

  public OffloadedParameters(ParameterList parameters) {
    this.parameters = new LinkedHashSet<>(parameters.values());
  }

  /// Keeps the memory of the parameters' current arrays alive until this is closed.
  private final class Contents implements AutoCloseable {
    private final Map<Parameter, ArrayMemory> arrays = new LinkedHashMap<>();
    private final SequencedMap<Memory, Integer> pieces = new LinkedHashMap<>();
    private final Device device;

    Contents() {
      device = Cleanup.orUndo(this::look, this::close);
    }

    private Device look() {
      Device found = Device.HOST;
      for (Parameter parameter : parameters) {
        ArrayMemory array = ArrayMemory.of(parameter.getArray());
        arrays.put(parameter, array);
        if (arrays.size() > 1 && !array.device().equals(found)) {
          throw new MisuseException(
              "the block's parameters must be on one device (were on %s and %s)"
                  .formatted(found, array.device()));
        }
        found = array.device();
        Memory memory = memory(array);
        if (memory.bytes() > 0) {
          pieces.putIfAbsent(memory, pieces.size());
        }
      }
      return found;
    }

    private static Memory memory(ArrayMemory array) {
      return new Memory(array.address(), array.bytes());
    }

    List<Long> sizes() {
      return pieces.keySet().stream().map(Memory::bytes).toList();
    }

    List<Long> addresses() {
      return pieces.keySet().stream().map(Memory::address).toList();
    }

    @Override
    public void close() {
      Cleanup.forEach(arrays.values(), ArrayMemory::close);
    }
  }

  /// Allocates the host memory.
  public void prepare() {
    try (Contents contents = new Contents()) {
      OffloadBuffer _ = bufferFor(contents);
    }
  }

  private OffloadBuffer bufferFor(Contents contents) {
    OffloadBuffer known = buffer;
    if (known != null && known.suits(contents.device, contents.sizes())) {
      return known;
    }
    if (known != null) {
      buffer = null;
      known.close();
    }
    OffloadBuffer prepared = OffloadBuffer.prepare(contents.device, contents.sizes());
    buffer = prepared;
    return prepared;
  }

  /// Copies the values to the host and closes the arrays.
  public void offload() {
    boolean isGpu;
    try (Contents contents = new Contents()) {
      bufferFor(contents).save(contents.addresses());
      contents.arrays.forEach((parameter, array) ->
          away.put(
              parameter,
              new Away(
                  parameter.getArray().getManager(),
                  array.dtype(),
                  array.shape(),
                  parameter.getArray().getName(),
                  contents.pieces.getOrDefault(Contents.memory(array), -1))));
      isGpu = !contents.device.equals(Device.HOST);
    }
    Cleanup.forEach(away.keySet(), Parameter::close);
    if (isGpu) {
      // libtorch caches freed memory; this call returns it to the device.
      JniUtils.emptyCudaCache();
    }
  }

  /// Copies the values back from the host, into new arrays.
  public void restore() {
    OffloadBuffer bytes = Objects.requireNonNull(buffer);
    SequencedMap<Parameter, NDArray> arrays = new LinkedHashMap<>();
    try (Loaded loaded = bytes.restore()) {
      Cleanup.orUndo(
          () ->
              away.forEach(
                  (parameter, before) -> arrays.put(parameter, array(before, bytes, loaded))),
          () -> Cleanup.forEach(arrays.values(), NDArray::close));
    }
    arrays.forEach((parameter, array) ->
        NewArrays.give(Objects.requireNonNull(away.get(parameter)).manager(), parameter, array));
    away.clear();
  }

  private static NDArray array(Away before, OffloadBuffer bytes, Loaded loaded) {
    Region region =
        before.piece() < 0 ? new Region(null, 0, 0) : loaded.regions().get(before.piece());
    return TorchArrays.over(
        before.manager(), region, bytes.device(), before.dtype(), before.shape(), before.name());
  }

  /// Frees the host memory.
  @Override
  public void close() {
    if (buffer != null) {
      buffer.close();
    }
  }
}
