// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.djl.internal.names.Names;
import dev.gantry.djl.internal.torch.DlPack;
import dev.gantry.formats.internal.weights.LoadedTensors;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Objects;
import java.util.SequencedMap;

/// Loaded tensors as plain memory, for libraries other than DJL: a [MemorySegment], an address on the
/// GPU, or a DLPack tensor. Each is dense, in C order, little endian, of the stored type.
///
/// The memory stays allocated until [#close] and until every DLPack tensor is deleted.
/// Thread-safe.
public final class TensorMemory implements AutoCloseable {
  private final SequencedMap<String, TensorInfo> tensors = new LinkedHashMap<>();
  private final SequencedMap<String, Region> regions = new LinkedHashMap<>();
  private final LoadedTensors loaded;
  private final Device device;
  private final Arena arena = Arena.ofShared();

  TensorMemory(Iterable<TensorInfo> tensors, LoadedTensors loaded, Device device) {
    this.loaded = loaded;
    this.device = device;
    Iterator<Region> region = loaded.regions().iterator();
    for (TensorInfo tensor : tensors) {
      this.tensors.put(tensor.name(), tensor);
      regions.put(tensor.name(), region.next());
    }
  }

  /// The tensors that were loaded, in the order of the weights.
  public SequencedMap<String, TensorInfo> tensors() {
    return Collections.unmodifiableSequencedMap(tensors);
  }

  /// The device of the memory.
  public Device device() {
    return device;
  }

  /// The transports that brought the bytes.
  public TransferReport report() {
    return loaded.report();
  }

  /// A tensor in host memory, valid until [#close]; `asByteBuffer()` makes a direct buffer of it
  /// that other libraries accept without a copy.
  ///
  /// @throws MisuseException if there is no such tensor, it is on a GPU, or this is closed
  public MemorySegment segment(String name) {
    Region region = region(name);
    if (!device.equals(Device.HOST)) {
      throw new MisuseException(
          "tensor '" + name + "' is on " + device + ": only host memory has a segment");
    }
    return MemorySegment.ofAddress(region.address()).reinterpret(region.length(), arena, null);
  }

  /// The address of a tensor's first byte, on its device: for a GPU what CUDA calls a device pointer.
  /// 0 for a tensor without elements. It must not be used once this is closed.
  ///
  /// @throws MisuseException if there is no such tensor, or this is closed
  public long address(String name) {
    return region(name).address();
  }

  /// A tensor as a `DLManagedTensor *` of DLPack (version 0.8, `dlpack.h`), without a copy. The library
  /// that takes it over calls its deleter once, from any thread; until then the memory stays, even if
  /// this is closed. Queued work on a GPU must have ended by then.
  ///
  /// @throws MisuseException if there is no such tensor, DLPack has no such dtype, or this is closed
  public MemorySegment dlpack(String name) {
    Region region = region(name);
    TensorInfo tensor = Objects.requireNonNull(tensors.get(name));
    Runnable release = region.retain();
    return Cleanup.orUndo(
        () -> DlPack.managed(region.address(), device, tensor.dtype(), tensor.shape(), release),
        release);
  }

  private Region region(String name) {
    MisuseException.requireGiven("name", name);
    if (!arena.scope().isAlive()) {
      throw new MisuseException("this tensor memory is closed");
    }
    Region region = regions.get(name);
    if (region == null) {
      throw new MisuseException(Names.unknown(name, tensors.keySet()));
    }
    return region;
  }

  /// Invalidates the segments and releases the memory. Closing twice does nothing.
  @Override
  public synchronized void close() {
    if (arena.scope().isAlive()) {
      arena.close();
      loaded.close();
    }
  }
}
