// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.nn.SymbolBlock;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.djl.internal.ndarray.ArrayMemory;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.formats.TensorTransform;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;

/// One load of tensors into parameters. All names, shapes and types are checked before any tensor
/// is read. Parameters that have no array get one only after all tensors are loaded.
public final class ParameterLoad {
  private final NDManager manager;
  private final LoadSettings settings;
  private final SequencedMap<String, StoredTensor> tensors;
  private final TensorLoad load;

  public ParameterLoad(
      GantrySession session,
      NDManager manager,
      LoadSettings settings,
      SequencedMap<String, StoredTensor> tensors) {
    this.manager = manager;
    this.settings = settings;
    this.tensors = tensors;
    this.load = new TensorLoad(session, manager, settings);
  }

  /// Whether some values of a parameter that had an array have changed.
  public boolean hasChanged() {
    return load.hasHandedOver();
  }

  /// Loads a block: afterwards all of its parameters have an array, and it can predict.
  ///
  /// @param inputShapes not used if the block is initialised
  public ParameterFit.Outcome into(Block block, NameRules rules, Shape... inputShapes) {
    if (block instanceof SymbolBlock && block.getParameters().isEmpty()) {
      throw new MisuseException(
          "the module has no parameters: if it was frozen, its weights became constants");
    }
    DataType type = settings.types().others().orElse(DataType.FLOAT32);
    try (BlockShapes _ = BlockShapes.of(manager, block, inputShapes);
        NewArrays arrays = new NewArrays(manager)) {
      ParameterFit fit = fit(block.getParameters(), rules, Optional.of(type));
      fit.left()
          .forEach((path, parameter) -> {
            if (!parameter.isInitialized()) {
              arrays.addInitial(path, parameter, type);
            }
          });
      load(fit, arrays, type);
      return fit.outcome();
    }
  }

  /// Loads parameters. Parameters that have neither an array nor a tensor stay without an array.
  public ParameterFit.Outcome into(ParameterList parameters, NameRules rules) {
    ParameterFit fit = fit(parameters, rules, Optional.empty());
    try (NewArrays arrays = new NewArrays(manager)) {
      load(fit, arrays, settings.types().others().orElse(DataType.FLOAT32));
    }
    return fit.outcome();
  }

  private ParameterFit fit(ParameterList parameters, NameRules rules, Optional<DataType> type) {
    ParameterPlan plan = ParameterPlan.of(tensors, parameters, rules, settings);
    return ParameterFit.of(plan, settings, type);
  }

  /// The key of parameters that share one new array because they are tied.
  private record Shared(
      List<StoredTensor> tensors, int axis, List<TensorTransform> transforms, DataType type) {
    static Shared of(ParameterFit.Target target) {
      ParameterPlan.Tensors fill = target.fill();
      return new Shared(fill.tensors(), fill.axis(), fill.transforms(), target.type());
    }
  }

  /// @param arrays receives the arrays of the parameters that have none
  /// @param constantType the type of new arrays with a constant value
  private void load(ParameterFit fit, NewArrays arrays, DataType constantType) {
    Map<Parameter, ParameterFit.Target> once = new LinkedHashMap<>();
    fit.targets().values().forEach(target -> once.putIfAbsent(target.parameter(), target));
    SequencedMap<Shared, List<Parameter>> fresh = new LinkedHashMap<>();
    Copies copies = new Copies();
    for (ParameterFit.Target target : once.values()) {
      if (target.parameter().isInitialized()) {
        copies.add(target, target.parameter().getArray());
      } else {
        fresh.computeIfAbsent(Shared.of(target), _ -> new ArrayList<>()).add(target.parameter());
      }
    }
    SequencedMap<Shared, TensorRequest> direct = new LinkedHashMap<>();
    fresh
        .keySet()
        .forEach(shared ->
            asStored(shared)
                .ifPresent(tensor ->
                    direct.put(shared, TensorRequest.of(tensor, Optional.of(shared.type())))));
    addDirect(direct, fresh, arrays);
    fresh.forEach((shared, parameters) -> {
      if (!direct.containsKey(shared)) {
        ParameterFit.Target target = Objects.requireNonNull(once.get(parameters.getFirst()));
        NDArray array = arrays.create(target.shape(), target.type(), settings.device());
        array.setName(target.fill().names().getFirst());
        arrays.add(parameters, array);
        copies.add(target, array);
      }
    });
    copies.load();
    fit.plan()
        .fills()
        .values()
        .forEach(fill -> {
          if (fill instanceof ParameterPlan.Constant(Parameter parameter, float value)) {
            arrays.fill(parameter, value, constantType);
          }
        });
    arrays.give();
  }

  private void addDirect(
      SequencedMap<Shared, TensorRequest> direct,
      Map<Shared, List<Parameter>> parameters,
      NewArrays arrays) {
    NDList loaded = load.arrays(List.copyOf(direct.values()));
    int next = 0;
    for (Shared shared : direct.keySet()) {
      List<Parameter> those = Objects.requireNonNull(parameters.get(shared));
      NDArray array = loaded.get(next++);
      arrays.add(those, isStatistic(those.getFirst()) ? TorchArrays.writable(array) : array);
    }
  }

  /// Whether native code changes the parameter in a training's `forward`, where no guard sees it.
  private static boolean isStatistic(Parameter parameter) {
    return switch (parameter.getType()) {
      case RUNNING_MEAN, RUNNING_VAR -> true;
      case WEIGHT, BIAS, GAMMA, BETA, OTHER -> false;
    };
  }

  /// The stored tensor whose bytes are the value: a whole tensor, or some of its rows. Empty if
  /// the value must be computed.
  private Optional<StoredTensor> asStored(Shared shared) {
    if (shared.tensors().size() > 1) {
      return Optional.empty();
    }
    StoredTensor tensor = shared.tensors().getFirst();
    boolean cuttable =
        !(tensor.encoding() instanceof Encoding.Quantised) && tensor.dtype().bits() >= Byte.SIZE;
    for (TensorTransform transform : shared.transforms()) {
      switch (transform) {
        case TensorTransform.Part(int axis, int index, int count) when axis == 0 && cuttable -> {
          long rows = tensor.shape().dimension(0) / count;
          tensor = tensor.rows(rows * index, rows * (index + 1));
        }
        case TensorTransform.Slice(int axis, long from, long to) when axis == 0 && cuttable ->
            tensor = tensor.rows(from, to);
        case TensorTransform.Part _,
            TensorTransform.Slice _,
            TensorTransform.Permute _,
            TensorTransform.Reshape _,
            TensorTransform.Pad _ -> {
          return Optional.empty();
        }
      }
    }
    return Optional.of(tensor);
  }

  /// Copies values into the arrays that parameters have already.
  private final class Copies {
    private final SequencedMap<StoredTensor, List<RowCopy>> byTensor = new LinkedHashMap<>();
    private final Map<StoredTensor, DataType> types = new LinkedHashMap<>();

    void add(ParameterFit.Target target, NDArray array) {
      ParameterPlan.Tensors fill = target.fill();
      long first = 0;
      for (StoredTensor tensor : fill.tensors()) {
        RowCopy copy = new RowCopy(tensor.shape(), fill.transforms(), array, fill.axis(), first);
        byTensor.computeIfAbsent(tensor, _ -> new ArrayList<>()).add(copy);
        // A tensor that parameters want in several types becomes FLOAT32, the widest that a
        // conversion makes.
        types.merge(tensor, target.type(), (one, other) -> one == other ? one : DataType.FLOAT32);
        first += copy.length();
      }
    }

    void load() {
      Map<String, List<RowCopy>> byName = new LinkedHashMap<>();
      List<TensorRequest> requests = new ArrayList<>();
      tensors
          .values()
          .forEach(tensor -> {
            List<RowCopy> copies = byTensor.get(tensor);
            if (copies != null) {
              byName.put(tensor.name(), copies);
              requests.add(TensorRequest.of(tensor, Optional.ofNullable(types.get(tensor))));
            }
          });
      load.eachPart(
          requests,
          tensor ->
              byName.getOrDefault(tensor.name(), List.of()).stream().allMatch(RowCopy::takesPieces),
          taker(byName),
          load::report);
    }

    private static TensorTaker taker(Map<String, List<RowCopy>> byName) {
      return new TensorTaker() {
        @Override
        public void take(String tensor, NDArray rows, long firstRow) {
          byName.getOrDefault(tensor, List.of()).forEach(copy -> copy.copy(rows, firstRow));
        }

        @Override
        public Optional<NDArray> place(StoredTensor tensor) {
          List<RowCopy> copies = byName.getOrDefault(tensor.name(), List.of());
          return copies.size() == 1 && copies.getFirst().isWhole()
              ? Optional.of(copies.getFirst().target())
                  .filter(array -> ArrayMemory.holds(array, tensor.dtype(), tensor.shape()))
              : Optional.empty();
        }
      };
    }
  }
}
