package dev.gantry.djl.internal;

import ai.djl.ndarray.NDArray;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;

/// What takes two arrays, their results guarded.
abstract class GuardedArithmetic extends OwningNDArray {
  GuardedArithmetic(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  @Override
  public PtNDArray eq(NDArray other) {
    return guard(super.eq(other));
  }

  @Override
  public PtNDArray neq(NDArray other) {
    return guard(super.neq(other));
  }

  @Override
  public PtNDArray gt(NDArray other) {
    return guard(super.gt(other));
  }

  @Override
  public PtNDArray gte(NDArray other) {
    return guard(super.gte(other));
  }

  @Override
  public PtNDArray lt(NDArray other) {
    return guard(super.lt(other));
  }

  @Override
  public PtNDArray lte(NDArray other) {
    return guard(super.lte(other));
  }

  @Override
  public PtNDArray add(NDArray other) {
    return guard(super.add(other));
  }

  @Override
  public PtNDArray sub(NDArray other) {
    return guard(super.sub(other));
  }

  @Override
  public PtNDArray mul(NDArray other) {
    return guard(super.mul(other));
  }

  @Override
  public PtNDArray div(NDArray other) {
    return guard(super.div(other));
  }

  @Override
  public PtNDArray mod(NDArray other) {
    return guard(super.mod(other));
  }

  @Override
  public PtNDArray pow(NDArray other) {
    return guard(super.pow(other));
  }

  @Override
  public NDArray xlogy(NDArray other) {
    return guard(super.xlogy(other));
  }

  @Override
  public PtNDArray maximum(NDArray other) {
    return guard(super.maximum(other));
  }

  @Override
  public PtNDArray minimum(NDArray other) {
    return guard(super.minimum(other));
  }

  @Override
  public PtNDArray atan2(NDArray other) {
    return guard(super.atan2(other));
  }

  @Override
  public PtNDArray logicalAnd(NDArray other) {
    return guard(super.logicalAnd(other));
  }

  @Override
  public PtNDArray logicalOr(NDArray other) {
    return guard(super.logicalOr(other));
  }

  @Override
  public PtNDArray logicalXor(NDArray other) {
    return guard(super.logicalXor(other));
  }

  @Override
  public PtNDArray dot(NDArray other) {
    return guard(super.dot(other));
  }

  @Override
  public NDArray matMul(NDArray other) {
    return guard(super.matMul(other));
  }

  @Override
  public NDArray batchMatMul(NDArray other) {
    return guard(super.batchMatMul(other));
  }
}
