// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.export.BlockExport;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.djl.internal.training.TorchTraining;
import dev.gantry.djl.internal.training.TrainingContents;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.torch.NewDcp;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// Trainings in folders of `torch.distributed.checkpoint`, see [Checkpoints#saveDcp].
final class DcpTraining {
  private DcpTraining() {}

  static void save(SaveRequest request, ParameterNames names, Path folder) {
    NameRules rules = names.rules();
    request.trainer().ifPresent(given -> TrainingContents.requireOf(request.model(), given));
    Optional<TorchTraining> training =
        request.trainer().map(given -> TorchTraining.of(given, rules));
    List<TorchTraining.Group> groups =
        training
            .map(TorchTraining::groups)
            .orElseGet(() -> List.of(TorchTraining.model(request.model(), rules)));
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    List<BlockExport> exports = new ArrayList<>();
    try {
      for (TorchTraining.Group group : groups) {
        BlockExport export = BlockExport.of(group.arrays(), group.rules(), Map.of());
        exports.add(export);
        export.tensors().forEach((name, array) -> arrays.put(group.name(name), array));
      }
      try (ArraySources sources = ArraySources.of(arrays)) {
        List<NewTensor> tensors = new ArrayList<>(sources.tensors());
        training
            .map(TorchTraining::steps)
            .ifPresent(steps -> steps.forEach((name, step) -> tensors.add(number(name, step))));
        var _ =
            NewDcp.of(folder, tensors, values(request))
                .write(GantrySession.shared(), WriteOptions.defaults());
      }
    } finally {
      exports.forEach(BlockExport::close);
    }
  }

  private static NewTensor number(String name, float value) {
    return new NewTensor(
        name,
        DType.F32,
        TensorShape.of(),
        new Memory.OnHost(MemorySegment.ofArray(new float[] {value})));
  }

  private static Map<String, Object> values(SaveRequest request) {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("step", request.step());
    values.put("epoch", request.epoch());
    request.metrics().forEach((name, value) -> values.put("metrics." + name, value));
    request.metadata().forEach((name, value) -> values.put("notes." + name, value));
    return values;
  }

  static Map<String, String> restore(Path folder, Trainer trainer, ParameterNames names) {
    GantrySession session = GantrySession.shared();
    WeightsCatalogue saved = WeightsFormats.open(session, Location.of(folder));
    TorchTraining.of(trainer, names.rules()).restore(session, saved);
    return saved.metadata();
  }
}
