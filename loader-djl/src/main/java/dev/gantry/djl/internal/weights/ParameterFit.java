// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import ai.djl.nn.Parameter;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.TensorTransform;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;

/// A plan whose tensors were compared with their parameters. All targets can be loaded.
///
/// @param targets by path
/// @param mismatched by path, the parameters whose tensors do not fit, and which are left out
public record ParameterFit(
    SequencedMap<String, Target> targets,
    SequencedMap<String, Mismatch> mismatched,
    ParameterPlan plan) {
  /// A parameter whose shape differs from that of its tensors.
  record Mismatch(Parameter parameter, String reason) {}

  /// A parameter and the value that it gets.
  ///
  /// @param shape the shape of the value
  /// @param type the type of the array that the parameter has or gets
  record Target(
      Parameter parameter, ParameterPlan.Tensors fill, TensorShape shape, DataType type) {}

  /// @param otherwise the type of parameters that have no array, if the settings name none; empty for
  ///     the stored type
  /// @throws MisuseException if a tensor does not fit its parameter, or a parameter's array cannot be
  ///     changed
  static ParameterFit of(ParameterPlan plan, LoadSettings settings, Optional<DataType> otherwise) {
    SequencedMap<String, Target> targets = new LinkedHashMap<>();
    SequencedMap<String, Mismatch> mismatched = new LinkedHashMap<>();
    plan.fills()
        .forEach((path, fill) -> {
          TorchArrays.requireOpen(path, fill.parameter());
          if (fill instanceof ParameterPlan.Tensors made) {
            TensorShape shape = shape(path, made);
            Parameter parameter = made.parameter();
            if (settings.skipMismatched() && !fits(parameter, shape)) {
              mismatched.put(
                  path,
                  new Mismatch(
                      parameter,
                      "%s, and %s has %s"
                          .formatted(shape(parameter), String.join(", ", made.names()), shape)));
              return;
            }
            requireFit(path, made, shape, settings);
            DataType type = type(path, made, settings, otherwise);
            targets.put(path, new Target(parameter, made, shape, type));
          }
          if (fill.parameter().isInitialized()) {
            TorchArrays.requireWritable(fill.parameter().getArray());
          }
        });
    return new ParameterFit(targets, mismatched, plan);
  }

  /// The parameters that get no stored value. They keep their arrays, or get the values of their
  /// initializers.
  SequencedMap<String, Parameter> left() {
    SequencedMap<String, Parameter> left = new LinkedHashMap<>(plan.missing());
    mismatched.forEach((path, mismatch) -> left.put(path, mismatch.parameter()));
    return left;
  }

  static TensorShape shape(Parameter parameter) {
    return PyTorch.shape(parameter.getShape());
  }

  /// Whether a value of this shape fits a parameter, which need not have a shape yet.
  private static boolean fits(Parameter parameter, TensorShape shape) {
    return parameter.getShape() == null || shape(parameter).equals(shape);
  }

  /// The shape of the value that a parameter gets.
  private static TensorShape shape(String path, ParameterPlan.Tensors fill) {
    StoredTensor first = fill.tensors().getFirst();
    TensorShape whole = first.shape();
    for (StoredTensor tensor : fill.tensors()) {
      TensorShape part = tensor.shape();
      for (TensorTransform transform : fill.transforms()) {
        try {
          part = transform.apply(part);
        } catch (MisuseException refused) {
          throw mismatch(path, fill, tensor, refused.getMessage());
        }
      }
      whole = tensor.equals(first) ? part : joined(path, fill, tensor, whole, part);
    }
    return whole;
  }

  private static void requireFit(
      String path, ParameterPlan.Tensors fill, TensorShape whole, LoadSettings settings) {
    if (!fits(fill.parameter(), whole)) {
      StoredTensor first = fill.tensors().getFirst();
      TensorShape wanted = shape(fill.parameter());
      throw mismatch(
          path,
          fill,
          first,
          "the parameter has shape "
              + wanted
              + (whole.equals(first.shape()) ? "" : ", and this gives " + whole)
              + (areTransposed(whole, wanted)
                  ? transposeHint(fill)
                  : settings.byOptions() ? "; optSkipMismatched(true) leaves it as it is" : ""));
    }
  }

  private static TensorShape joined(
      String path,
      ParameterPlan.Tensors fill,
      StoredTensor tensor,
      TensorShape before,
      TensorShape part) {
    int axis = fill.axis();
    boolean fits = before.rank() == part.rank() && axis < part.rank();
    long[] sizes = new long[part.rank()];
    for (int i = 0; fits && i < sizes.length; i++) {
      fits = i == axis || before.dimension(i) == part.dimension(i);
      sizes[i] =
          i == axis ? Math.addExact(before.dimension(i), part.dimension(i)) : part.dimension(i);
    }
    if (!fits) {
      throw mismatch(
          path, fill, tensor, "it cannot be concatenated along axis " + axis + " with " + before);
    }
    return TensorShape.of(sizes);
  }

  private static String transposeHint(ParameterPlan.Tensors fill) {
    return fill.transforms().contains(TensorTransform.transpose())
        ? "; leave out transpose()"
        : "; the tensor looks transposed: add transpose() to the rule";
  }

  /// Whether one matrix has the other's shape transposed.
  public static boolean areTransposed(TensorShape one, TensorShape other) {
    return one.rank() == 2
        && other.rank() == 2
        && one.dimension(0) == other.dimension(1)
        && one.dimension(1) == other.dimension(0);
  }

  private static DataType type(
      String path,
      ParameterPlan.Tensors fill,
      LoadSettings settings,
      Optional<DataType> otherwise) {
    TypePolicy types = settings.types();
    Parameter parameter = fill.parameter();
    Optional<DataType> type = Optional.empty();
    for (StoredTensor tensor : fill.tensors()) {
      Optional<DataType> stored = PyTorch.dataType(tensor.dtype());
      Optional<DataType> wanted =
          parameter.isInitialized()
              ? Optional.of(parameter.getArray().getDataType())
              : types.of(tensor.name()).or(() -> types.asStored() ? Optional.empty() : otherwise);
      DataType found =
          switch (TensorRequest.kind(tensor)) {
            case CAST -> wanted.filter(DataType::isFloating).or(() -> stored).orElseThrow();
            case CONVERT ->
                wanted
                    .filter(DataType::isFloating)
                    .orElseThrow(
                        () -> mismatch(path, fill, tensor, unheld(tensor.dtype(), settings)));
            case NONE -> stored.orElseThrow();
            case IMPOSSIBLE -> throw mismatch(path, fill, tensor, unheld(tensor.dtype(), settings));
          };
      if (parameter.isInitialized() && !wanted.equals(Optional.of(found))) {
        throw mismatch(path, fill, tensor, "the parameter is of type " + wanted.orElseThrow());
      }
      if (!parameter.isInitialized() && !found.isFloating() && isFloating(parameter)) {
        throw mismatch(path, fill, tensor, "the parameter is of a floating-point type");
      }
      if (type.isPresent() && !type.equals(Optional.of(found))) {
        throw mismatch(path, fill, tensor, "the tensors before it become " + type.orElseThrow());
      }
      type = Optional.of(found);
    }
    return type.orElseThrow();
  }

  private static String unheld(DType dtype, LoadSettings settings) {
    return "DJL holds no "
        + dtype
        + (settings.byOptions() ? "; optCast gives it another type" : "");
  }

  /// Whether the parameter must be floating-point. Only weights that are not trained may be
  /// integers.
  private static boolean isFloating(Parameter parameter) {
    return parameter.requiresGradient()
        || switch (parameter.getType()) {
          case GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR -> true;
          case WEIGHT, BIAS, OTHER -> false;
        };
  }

  private static MisuseException mismatch(
      String path, ParameterPlan.Tensors fill, StoredTensor tensor, String reason) {
    return new MisuseException(
        "tensor '%s' (%s %s) does not fit parameter '%s' by %s: %s"
            .formatted(tensor.name(), tensor.dtype(), tensor.shape(), path, fill.rule(), reason));
  }

  /// Describes the result of loading this plan, for the [LoadReport][dev.gantry.djl.LoadReport].
  Outcome outcome() {
    SequencedMap<String, String> loaded = new LinkedHashMap<>();
    SequencedMap<String, String> transformed = new LinkedHashMap<>();
    SequencedMap<String, String> cast = new LinkedHashMap<>();
    SequencedMap<String, String> reasons = new LinkedHashMap<>();
    mismatched.forEach((path, mismatch) -> reasons.put(path, mismatch.reason()));
    targets.forEach((path, target) -> {
      ParameterPlan.Tensors fill = target.fill();
      loaded.put(path, String.join(", ", fill.names()));
      List<String> steps = new ArrayList<>();
      fill.transforms().forEach(transform -> steps.add(transform.toString()));
      if (fill.tensors().size() > 1) {
        steps.add("concatenation along axis " + fill.axis());
      }
      if (!steps.isEmpty()) {
        transformed.put(path, String.join(", ", steps));
      }
      StoredTensor first = fill.tensors().getFirst();
      boolean quantised = first.encoding() instanceof Encoding.Quantised;
      if (quantised || first.dtype() != PyTorch.dtype(target.type())) {
        String stored =
            first.encoding() instanceof Encoding.Quantised layout
                ? layout.layout()
                : first.dtype().name();
        cast.put(path, stored + " to " + target.type().name());
      }
    });
    return new Outcome(
        loaded,
        List.copyOf(plan.missing().keySet()),
        reasons,
        plan.unexpected(),
        plan.ignored(),
        transformed,
        cast);
  }

  /// The components of a [LoadReport][dev.gantry.djl.LoadReport].
  public record Outcome(
      SequencedMap<String, String> loaded,
      List<String> missing,
      SequencedMap<String, String> mismatched,
      List<String> unexpected,
      List<String> ignored,
      SequencedMap<String, String> transformed,
      SequencedMap<String, String> cast) {}
}
