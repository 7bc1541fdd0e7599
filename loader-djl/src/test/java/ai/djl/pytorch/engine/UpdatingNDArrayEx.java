// SPDX-License-Identifier: Apache-2.0
package ai.djl.pytorch.engine;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.pytorch.jni.JniUtils;

/// Adds the updates that DJL's PyTorch engine lacks, so that DJL's own optimizers run on it. The
/// class is in DJL's package, because the constructor of its superclass is visible only there.
final class UpdatingNDArrayEx extends PtNDArrayEx {
  UpdatingNDArrayEx(PtNDArray array) {
    super(array);
  }

  @Override
  public void nagUpdate(
      NDList inputs,
      NDList weights,
      float learningRate,
      float weightDecay,
      float rescaleGrad,
      float clipGrad,
      float momentum) {
    NDArray weight = weights.singletonOrThrow();
    NDArray gradient = inputs.get(1).mul(rescaleGrad).add(weight.mul(weightDecay));
    NDArray step = gradient;
    if (momentum != 0) {
      NDArray velocity = inputs.get(2);
      velocity.muli(momentum).addi(gradient);
      step = gradient.add(velocity.mul(momentum));
    }
    update(weight, step.mul(learningRate));
  }

  @Override
  public void rmspropUpdate(
      NDList inputs,
      NDList weights,
      float learningRate,
      float weightDecay,
      float rescaleGrad,
      float clipGrad,
      float rho,
      float momentum,
      float epsilon,
      boolean centered) {
    NDArray weight = weights.singletonOrThrow();
    NDArray gradient = inputs.get(1).mul(rescaleGrad).add(weight.mul(weightDecay));
    NDArray squares = inputs.get(2);
    average(squares, gradient.square(), rho);
    if (!centered) {
      update(weight, gradient.mul(learningRate).div(squares.add(epsilon).sqrt()));
      return;
    }
    NDArray mean = inputs.get(3);
    average(mean, gradient, rho);
    NDArray deviation = squares.sub(mean.square()).add(epsilon).sqrt();
    NDArray velocity = inputs.get(4);
    velocity.muli(momentum).addi(gradient.mul(learningRate).div(deviation));
    update(weight, velocity);
  }

  @Override
  public void adagradUpdate(
      NDList inputs,
      NDList weights,
      float learningRate,
      float weightDecay,
      float rescaleGrad,
      float clipGrad,
      float epsilon) {
    NDArray weight = weights.singletonOrThrow();
    NDArray gradient = inputs.get(1).mul(rescaleGrad);
    NDArray history = inputs.get(2);
    history.addi(gradient.square());
    update(weight, gradient.mul(learningRate).div(history.add(epsilon).sqrt()));
  }

  @Override
  public void adadeltaUpdate(
      NDList inputs,
      NDList weights,
      float weightDecay,
      float rescaleGrad,
      float clipGrad,
      float rho,
      float epsilon) {
    NDArray weight = weights.singletonOrThrow();
    NDArray gradient = inputs.get(1).mul(rescaleGrad);
    NDArray squares = inputs.get(2);
    NDArray deltas = inputs.get(3);
    average(squares, gradient.square(), rho);
    NDArray step = deltas.add(epsilon).sqrt().div(squares.add(epsilon).sqrt()).mul(gradient);
    average(deltas, step.square(), rho);
    update(weight, step);
  }

  private static void average(NDArray mean, NDArray value, float kept) {
    mean.muli(kept).addi(value.mul(1 - kept));
  }

  private static void update(NDArray weight, NDArray step) {
    weight.subi(step);
    JniUtils.zeroGrad((PtNDArray) weight);
  }
}
