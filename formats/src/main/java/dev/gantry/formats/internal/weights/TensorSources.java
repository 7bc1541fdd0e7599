// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/// The tensors of weights as sources for a writer. Plain tensors stay in their files; all other
/// tensors are read into the CPU's memory. Close this after the write.
public final class TensorSources implements AutoCloseable {
  private final List<NewTensor> tensors;
  private final LoadedTensors loaded;

  private TensorSources(List<NewTensor> tensors, LoadedTensors loaded) {
    this.tensors = tensors;
    this.loaded = loaded;
  }

  /// @throws dev.gantry.core.MalformedFileException if a tensor cannot be decoded
  /// @throws dev.gantry.core.TransferException if a file cannot be read, or the CPU lacks memory
  public static TensorSources of(GantrySession session, WeightsCatalogue weights) {
    List<StoredTensor> encoded =
        weights.tensors().values().stream().filter(tensor -> !tensor.isPlain()).toList();
    LoadedTensors loaded =
        LoadedTensors.load(session, encoded, Device.HOST, TransferOptions.defaults());
    Iterator<Region> regions = loaded.regions().iterator();
    List<NewTensor> tensors = new ArrayList<>(weights.tensors().size());
    for (StoredTensor tensor : weights.tensors().values()) {
      Source source =
          tensor.isPlain() ? new Source.FilePart(tensor.extent()) : regions.next().source();
      tensors.add(new NewTensor(tensor.name(), tensor.dtype(), tensor.shape(), source));
    }
    return new TensorSources(List.copyOf(tensors), loaded);
  }

  /// The tensors in the catalogue's order.
  public List<NewTensor> tensors() {
    return tensors;
  }

  @Override
  public void close() {
    loaded.close();
  }
}
