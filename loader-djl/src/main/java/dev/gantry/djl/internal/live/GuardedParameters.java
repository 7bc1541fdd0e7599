// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.live;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.ndarray.GantryNDArray;
import dev.gantry.djl.internal.ndarray.Guards;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.function.BooleanSupplier;

/// The parameters of a block whose arrays check at each use whether they may be used now. Without
/// this check, a predictor that has the block itself, and not
/// [LiveWeights#block()][dev.gantry.djl.LiveWeights#block()], would read the arrays while they
/// change or after they were freed.
public final class GuardedParameters {
  private static final PrivateField<NDArray> ARRAY =
      PrivateField.of(Parameter.class, "array", NDArray.class.getName());
  private static final StackWalker CALLERS =
      StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);

  private final List<Parameter> parameters;
  private final BooleanSupplier isCovered;
  private volatile boolean released;

  /// @param isCovered whether the current thread may use the arrays
  public GuardedParameters(ParameterList parameters, BooleanSupplier isCovered) {
    PrivateField.requireAll(List.of(ARRAY));
    this.parameters = parameters.values();
    this.isCovered = isCovered;
  }

  /// Guards the arrays that the parameters have now. An array that DJL made is taken over: the
  /// caller's own reference to it is closed.
  public void guard() {
    IdentityHashMap<NDArray, GantryNDArray> taken = new IdentityHashMap<>();
    for (Parameter parameter : parameters) {
      GantryNDArray array = taken.computeIfAbsent(ARRAY.get(parameter), Guards::takeOver);
      array.askBeforeUse(() -> requireCovered(array));
      ARRAY.set(parameter, array);
    }
  }

  /// Removes the guard from the arrays that the parameters have now. An offload has closed all
  /// earlier arrays.
  public void release() {
    released = true;
    for (Parameter parameter : parameters) {
      if (parameter.isInitialized() && parameter.getArray() instanceof GantryNDArray array) {
        array.askBeforeUse(null);
      }
    }
  }

  /// Refuses an uncovered use within a block's `forward`. Uses outside of `forward`, such as
  /// reading an array's values, are no predictions and are allowed.
  private void requireCovered(GantryNDArray array) {
    if ((released && !array.isReleased())
        || isCovered.getAsBoolean()
        || CALLERS.walk(frames -> frames.noneMatch(GuardedParameters::isPrediction))) {
      return;
    }
    throw new MisuseException(
        released
            ? "the weights were offloaded after this predictor had used them: make another"
                + " predictor"
            : "the weights are LiveWeights', and this prediction does not go through live.block():"
                + " make the predictor after model.setBlock(live.block())");
  }

  private static boolean isPrediction(StackWalker.StackFrame frame) {
    return frame.getMethodName().startsWith("forward")
        && Block.class.isAssignableFrom(frame.getDeclaringClass());
  }
}
