// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Memory;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.weights.WeightsFormatContract;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class SafetensorsFormatTest extends WeightsFormatContract {
  @Override
  protected String format() {
    return "safetensors";
  }

  @Override
  protected String fileName() {
    return "model.safetensors";
  }

  @Override
  protected void write(Path file, Map<String, Given> tensors) {
    List<NewTensor> made =
        tensors.entrySet().stream()
            .map(entry ->
                new NewTensor(
                    entry.getKey(),
                    entry.getValue().dtype(),
                    entry.getValue().shape(),
                    new Memory.OnHost(MemorySegment.ofArray(entry.getValue().bytes()))))
            .toList();
    try (GantrySession session = GantrySession.open()) {
      var _ = NewSafetensors.file(file, made, Map.of()).write(session, WriteOptions.defaults());
    }
  }
}
