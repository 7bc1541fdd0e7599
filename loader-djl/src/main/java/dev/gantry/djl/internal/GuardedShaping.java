package dev.gantry.djl.internal;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;

/// Indexing, views and changes of shape, their results guarded.
abstract class GuardedShaping extends GuardedReductions {
  GuardedShaping(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  @Override
  public NDArray stopGradient() {
    return guard(super.stopGradient());
  }

  @Override
  public NDArray get(NDManager manager, long... indices) {
    return guard(super.get(manager, indices));
  }

  @Override
  public NDArray gather(NDArray index, int axis) {
    return guard(super.gather(index, axis));
  }

  @Override
  public NDArray take(NDManager manager, NDArray index) {
    return guard(super.take(manager, index));
  }

  @Override
  public NDArray put(NDArray index, NDArray value) {
    return guard(super.put(index, value));
  }

  @Override
  public NDArray scatter(NDArray index, NDArray value, int axis) {
    return guard(super.scatter(index, value, axis));
  }

  @Override
  public PtNDArray booleanMask(NDArray index, int axis) {
    return guard(super.booleanMask(index, axis));
  }

  @Override
  public PtNDArray rotate90(int times, int[] axes) {
    return guard(super.rotate90(times, axes));
  }

  @Override
  public NDList split(long sections, int axis) {
    return guard(super.split(sections, axis));
  }

  @Override
  public NDList split(long[] indices, int axis) {
    return guard(super.split(indices, axis));
  }

  @Override
  public PtNDArray flatten() {
    return guard(super.flatten());
  }

  @Override
  public NDArray flatten(int startDim, int endDim) {
    return guard(super.flatten(startDim, endDim));
  }

  @Override
  public NDArray pad(Shape padding, double value) {
    return guard(super.pad(padding, value));
  }

  @Override
  public PtNDArray reshape(Shape shape) {
    return guard(super.reshape(shape));
  }

  @Override
  public PtNDArray expandDims(int axis) {
    return guard(super.expandDims(axis));
  }

  @Override
  public PtNDArray squeeze() {
    return guard(super.squeeze());
  }

  @Override
  public PtNDArray squeeze(int axis) {
    return guard(super.squeeze(axis));
  }

  @Override
  public NDArray diagonal() {
    return guard(super.diagonal());
  }

  @Override
  public NDArray diagonal(int offset) {
    return guard(super.diagonal(offset));
  }

  @Override
  public NDArray diagonal(int offset, int axis1, int axis2) {
    return guard(super.diagonal(offset, axis1, axis2));
  }

  @Override
  public PtNDArray tile(long[] repeats) {
    return guard(super.tile(repeats));
  }

  @Override
  public PtNDArray repeat(int axis, long repeats) {
    return guard(super.repeat(axis, repeats));
  }

  @Override
  public PtNDArray repeat(long[] repeats) {
    return guard(super.repeat(repeats));
  }

  @Override
  public PtNDArray swapAxes(int axis1, int axis2) {
    return guard(super.swapAxes(axis1, axis2));
  }

  @Override
  public NDArray flip(int... axes) {
    return guard(super.flip(axes));
  }

  @Override
  public PtNDArray transpose(int... axes) {
    return guard(super.transpose(axes));
  }

  @Override
  public PtNDArray broadcast(Shape shape) {
    return guard(super.broadcast(shape));
  }

  @Override
  public PtNDArray toDense() {
    return guard(super.toDense());
  }

  @Override
  public PtNDArray toSparse(SparseFormat fmt) {
    return guard(super.toSparse(fmt));
  }
}
