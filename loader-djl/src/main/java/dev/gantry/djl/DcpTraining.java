// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Cleanup;
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
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// A training that is to be written as a folder of `torch.distributed.checkpoint`, see [Checkpoints#saveDcp].
///
/// @param folder the folder's files
/// @param sources the memory of its tensors
record DcpTraining(NewDcp folder, ArraySources sources) implements AutoCloseable {
  static void save(SaveRequest request, ParameterNames names, Path folder) {
    request.trainer().ifPresent(given -> TrainingContents.requireOf(request.model(), given));
    Optional<TorchTraining> training =
        request.trainer().map(given -> TorchTraining.of(given, names.rules()));
    SequencedMap<String, NDArray> parameters =
        training
            .map(given -> given.parts().values())
            .orElseGet(() -> TrainingContents.initialized(request.model()));
    SequencedMap<String, NDArray> states =
        training.map(TorchTraining::states).orElseGet(LinkedHashMap::new);
    try (DcpTraining unsaved = of(request, names, parameters, states, folder)) {
      var _ = unsaved.folder().write(GantrySession.shared(), WriteOptions.defaults());
    }
  }

  /// @param parameters the model's arrays, by the paths of its parameters
  /// @param states the optimizer's arrays, as [TorchTraining#states] names them
  static DcpTraining of(
      SaveRequest request,
      ParameterNames names,
      SequencedMap<String, NDArray> parameters,
      SequencedMap<String, NDArray> states,
      Path folder) {
    NameRules rules = names.rules();
    Optional<TorchTraining> training =
        request.trainer().map(given -> TorchTraining.of(given, rules));
    List<TorchTraining.Group> groups =
        new ArrayList<>(List.of(TorchTraining.model(parameters, rules)));
    training.ifPresent(given -> groups.addAll(given.groups(states)));
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    List<BlockExport> exports = new ArrayList<>();
    try {
      for (TorchTraining.Group group : groups) {
        BlockExport export = BlockExport.of(group.arrays(), group.rules(), Map.of());
        exports.add(export);
        export.tensors().forEach((name, array) -> arrays.put(group.name(name), array));
      }
      ArraySources sources = ArraySources.of(arrays);
      return Cleanup.orUndo(
          () -> {
            List<NewTensor> tensors = new ArrayList<>(sources.tensors());
            training
                .map(given -> given.steps(states))
                .ifPresent(steps -> steps.forEach((name, step) -> tensors.add(number(name, step))));
            return new DcpTraining(NewDcp.of(folder, tensors, values(request)), sources);
          },
          sources::close);
    } finally {
      Cleanup.forEach(exports, BlockExport::close);
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
    // A checkpoint's folder also has files that would be opened instead.
    Path metadata = folder.resolve(NewDcp.METADATA_FILE);
    WeightsCatalogue saved =
        WeightsFormats.open(session, Location.of(Files.exists(metadata) ? metadata : folder));
    TorchTraining.of(trainer, names.rules()).restore(session, folder, saved);
    return saved.metadata();
  }

  @Override
  public void close() {
    sources.close();
  }
}
