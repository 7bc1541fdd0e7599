// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.nn.convolutional.Conv2d;
import ai.djl.nn.norm.LayerNorm;
import ai.djl.training.ParameterStore;
import ai.djl.util.PairList;
import dev.gantry.djl.internal.ndarray.FusedRows;
import dev.gantry.djl.internal.ndarray.OperatorArrays;
import dev.gantry.models.HubModel;
import dev.gantry.models.internal.blocks.Description.Norms;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A block whose parameters have fixed names, such as `layer0_query_weight`, and shapes that are
/// known from the start, so that any input shape initialises it.
public abstract class NamedBlock extends AbstractBlock {
  /// One forward pass: the source of the parameters' values, and the state that all layers share.
  ///
  /// @param epsilon the number that RMSNorms add, on the input's device, so that no layer copies
  ///     it there again; null if the block has no RMSNorm
  public record Pass(
      ParameterStore store, Device device, boolean training, @Nullable NDArray epsilon) {
    NDArray value(Parameter parameter) {
      return store.getValue(parameter, device, training);
    }
  }

  /// A part of a block, from hidden states to hidden states.
  public interface Part {
    /// Returns its input.
    Part SAME = (x, _) -> x;

    NDArray of(NDArray x, Pass pass);
  }

  /// A square window that moves over a map.
  record Window(int size, int stride, int padding) {
    long count(long places) {
      return (places + 2L * padding - size) / stride + 1;
    }
  }

  /// A dense layer: `x · weightᵀ + bias`.
  public record Dense(Parameter weight, @Nullable Parameter bias) implements Part {
    @Override
    public NDArray of(NDArray x, Pass pass) {
      NDArray added = bias == null ? null : pass.value(bias);
      return OperatorArrays.linear(x, pass.value(weight), added);
    }
  }

  /// A norm over the last axis. It is RMSNorm, `x / √(mean(x²) + ε) · gamma` with the mean in 32
  /// bits, or layer normalisation.
  ///
  /// @param gamma the scale; its last axes are those of the input
  public record Norm(Parameter gamma, @Nullable Parameter beta, Norms kind) implements Part {
    @Override
    public NDArray of(NDArray x, Pass pass) {
      NDArray stored = pass.value(gamma);
      Optional<NDArray> fused =
          kind.rms() && !pass.training()
              ? FusedRows.norm(x, stored, kind.epsilon(), kind.plusOne())
              : Optional.empty();
      return fused.orElseGet(() -> inSteps(x, stored, pass));
    }

    private NDArray inSteps(NDArray x, NDArray stored, Pass pass) {
      NDArray scale = kind.plusOne() ? stored.add(1) : stored;
      if (kind.rms()) {
        NDArray squares = x.toType(DataType.FLOAT32, false).square();
        NDArray epsilon = Objects.requireNonNull(pass.epsilon());
        NDArray root = squares.mean(new int[] {-1}, true).add(epsilon).sqrt();
        return x.div(root).toType(x.getDataType(), false).mul(scale);
      }
      boolean plain = scale.getShape().dimension() == 1;
      NDArray factors = plain ? scale : scale.get(0).onesLike();
      NDArray shift = beta == null ? factors.zerosLike() : pass.value(beta);
      NDArray normed =
          LayerNorm.layerNorm(x, factors.getShape(), factors, shift, (float) kind.epsilon())
              .singletonOrThrow();
      return plain ? normed : normed.mul(scale);
    }
  }

  public final Dense dense(String name, long outputs, long inputs, boolean bias) {
    return new Dense(
        parameter(name + "_weight", Parameter.Type.WEIGHT, outputs, inputs),
        bias ? parameter(name + "_bias", Parameter.Type.BIAS, outputs) : null);
  }

  /// Makes a norm over the last axis, of this width.
  final Norm norm(String name, int width, Norms kind) {
    return new Norm(
        parameter(name + "_gamma", Parameter.Type.GAMMA, width),
        kind.rms() || !kind.bias() ? null : parameter(name + "_beta", Parameter.Type.BETA, width),
        kind);
  }

  final Part convolution(
      String name, int outputs, int inputs, Window window, int groups, boolean bias) {
    int size = window.size();
    Parameter weight =
        parameter(name + "_weight", Parameter.Type.WEIGHT, outputs, inputs, size, size);
    Parameter added = bias ? parameter(name + "_bias", Parameter.Type.BIAS, outputs) : null;
    return (x, pass) -> {
      NDArray kernels = pass.value(weight);
      return Conv2d.conv2d(
              Attention.cast(x, kernels),
              kernels,
              added == null ? null : pass.value(added),
              square(window.stride()),
              square(window.padding()),
              square(1),
              groups)
          .singletonOrThrow();
    };
  }

  static Shape square(int side) {
    return new Shape(side, side);
  }

  public final Parameter parameter(String name, Parameter.Type type, long... shape) {
    boolean statistic = type == Parameter.Type.RUNNING_MEAN || type == Parameter.Type.RUNNING_VAR;
    return addParameter(
        Parameter.builder()
            .setName(name)
            .setType(type)
            .optShape(new Shape(shape))
            .optRequiresGrad(!statistic)
            .build());
  }

  @Override
  protected final NDList forwardInternal(
      ParameterStore store,
      NDList inputs,
      boolean training,
      @Nullable PairList<String, Object> params) {
    NDArray first = inputs.head();
    return kept(first.getManager(), () -> forward(inputs, pass(store, first, training)));
  }

  /// Begins a pass.
  public final Pass pass(ParameterStore store, NDArray input, boolean training) {
    OptionalDouble epsilon = rmsEpsilon();
    return new Pass(
        store,
        input.getDevice(),
        training,
        epsilon.isPresent() ? number(input, epsilon.getAsDouble()) : null);
  }

  /// Returns the ε that the block's RMSNorms add; empty if it has no RMSNorm.
  public abstract OptionalDouble rmsEpsilon();

  /// Computes one forward pass. All arrays that the pass makes are freed, except the outputs.
  public abstract NDList forward(NDList inputs, Pass pass);

  /// Names the outputs as [HubModel#outputs()] says.
  public static NDList named(List<String> names, NDList outputs) {
    for (int i = 0; i < outputs.size(); i++) {
      outputs.get(i).setName(names.get(i));
    }
    return outputs;
  }

  /// Runs `pass`. The arrays that it returns belong to `manager`; all other arrays that it makes
  /// are freed.
  public static NDList kept(NDManager manager, Supplier<NDList> pass) {
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      NDList outputs = pass.get();
      outputs.attach(manager);
      NDScope.unregister(outputs);
      return outputs;
    }
  }

  /// Runs a part of a pass. All arrays that it makes are freed except its result. `input` is
  /// freed, too.
  public static NDArray step(NDArray input, Supplier<NDArray> part) {
    NDArray result;
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      result = part.get();
      NDScope.unregister(result);
    }
    NDScope.register(result);
    input.close();
    return result;
  }

  /// Makes a scalar in the input's manager and on its device, so that no layer copies the number
  /// there again. A scalar does not change the type of the other operand.
  public static NDArray number(NDArray input, double number) {
    return input.getManager().create((float) number);
  }

  /// Returns the shapes of the outputs, for an input `[batch, length]` or for an image's shape.
  public abstract List<Shape> outputShapes(Shape input);

  @Override
  public final Shape[] getOutputShapes(Shape[] inputShapes) {
    return outputShapes(inputShapes[0]).toArray(Shape[]::new);
  }
}
