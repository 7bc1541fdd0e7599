// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.HostFill;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.session.MemoryCheck;
import dev.gantry.core.internal.session.ReadInto;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.names.Names;
import dev.gantry.djl.internal.ndarray.ArrayMemory;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.weights.TensorReading;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Loads tensors into existing memory. All checks are made, and all tensors that must be decoded
/// are decoded, before the first byte changes.
public record IntoLoad(GantrySession session, TransferOptions options) {
  /// Loads tensors into arrays of their types and shapes.
  public TransferReport arrays(Map<String, StoredTensor> tensors, Map<String, NDArray> arrays) {
    SequencedMap<String, ArrayMemory> memories = new LinkedHashMap<>();
    try {
      SequencedMap<String, Memory> memory = new LinkedHashMap<>();
      arrays.forEach((name, array) -> {
        StoredTensor tensor = tensor(tensors, name);
        ArrayMemory own = ArrayMemory.named(name, array, ArrayMemory::inPlace);
        memories.put(name, own);
        requireSame(tensor, own);
        memory.put(name, own.memory());
      });
      return memory(tensors, memory);
    } finally {
      Cleanup.forEach(memories.values(), ArrayMemory::close);
    }
  }

  /// Refuses an array of another type or shape than the tensor's. A tensor of a type that DJL
  /// lacks needs an array of raw bytes (U8), as in other loads.
  private static void requireSame(StoredTensor tensor, ArrayMemory array) {
    boolean raw =
        PyTorch.dataType(tensor.dtype()).isEmpty()
            && array.dtype() == DType.U8
            && array.shape().equals(TensorShape.of(tensor.bytes()));
    boolean same = array.dtype() == tensor.dtype() && array.shape().equals(tensor.shape());
    if (!same && !raw) {
      throw new MisuseException(
          ("tensor '%s' is %s %s, and the array for it %s %s: copyTo changes neither, so give an"
               + " array of the tensor's type and shape, or load the tensor and cast or reshape it")
              .formatted(
                  tensor.name(), tensor.dtype(), tensor.shape(), array.dtype(), array.shape()));
    }
  }

  /// Loads tensors into memory of their sizes.
  public TransferReport memory(Map<String, StoredTensor> tensors, Map<String, Memory> memories) {
    List<ReadInto> all = new ArrayList<>();
    List<ReadInto> plain = new ArrayList<>();
    SequencedMap<StoredTensor, Memory> others = new LinkedHashMap<>();
    memories.forEach((name, memory) -> {
      StoredTensor tensor = tensor(tensors, name);
      MisuseException.requireGiven("the memory for '" + name + "'", memory);
      Extent extent =
          tensor.isPlain()
              ? tensor.extent()
              : new Extent(tensor.extent().file(), 0, tensor.bytes());
      ReadInto part = new ReadInto(name, extent, memory);
      all.add(part);
      if (tensor.isPlain()) {
        plain.add(part);
      } else {
        others.put(tensor, memory);
      }
    });
    if (others.isEmpty()) {
      return session.read(plain, options);
    }
    MemoryCheck.ofTargets(all);
    // The CPU decodes the tensors for any device, so they are fills of host memory.
    List<Loaded> decoded = new ArrayList<>();
    try {
      // The tensors are decoded into temporary memory first, so that a malformed file changes no
      // byte of the targets.
      others.forEach((tensor, memory) ->
          decoded.add(
              session.fill(
                  List.of(
                      new HostFill(
                          tensor.bytes(), target -> TensorReading.read(session, tensor, target))),
                  memory.device(),
                  options)));
      TransferReport report = session.read(plain, options);
      int next = 0;
      for (Memory memory : others.values()) {
        Loaded made = decoded.get(next++);
        made.regions().getFirst().copyTo(memory);
        report = report.plus(made.report());
      }
      return report;
    } finally {
      Cleanup.forEach(decoded, Loaded::close);
    }
  }

  private static StoredTensor tensor(Map<String, StoredTensor> tensors, String name) {
    StoredTensor tensor = tensors.get(MisuseException.requireGiven("a tensor's name", name));
    if (tensor == null) {
      throw new MisuseException(Names.unknown(name, tensors.keySet()));
    }
    return tensor;
  }
}
