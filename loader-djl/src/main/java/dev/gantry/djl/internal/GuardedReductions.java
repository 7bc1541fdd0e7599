package dev.gantry.djl.internal;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;

/// Reductions, scans and sorting, their results guarded.
abstract class GuardedReductions extends GuardedFunctions {
  GuardedReductions(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  @Override
  public PtNDArray all() {
    return guard(super.all());
  }

  @Override
  public PtNDArray any() {
    return guard(super.any());
  }

  @Override
  public PtNDArray none() {
    return guard(super.none());
  }

  @Override
  public PtNDArray max() {
    return guard(super.max());
  }

  @Override
  public PtNDArray max(int[] axes, boolean keepDims) {
    return guard(super.max(axes, keepDims));
  }

  @Override
  public PtNDArray min() {
    return guard(super.min());
  }

  @Override
  public PtNDArray min(int[] axes, boolean keepDims) {
    return guard(super.min(axes, keepDims));
  }

  @Override
  public PtNDArray sum() {
    return guard(super.sum());
  }

  @Override
  public PtNDArray sum(int[] axes, boolean keepDims) {
    return guard(super.sum(axes, keepDims));
  }

  @Override
  public NDArray cumProd(int axis) {
    return guard(super.cumProd(axis));
  }

  @Override
  public PtNDArray prod() {
    return guard(super.prod());
  }

  @Override
  public PtNDArray prod(int[] axes, boolean keepDims) {
    return guard(super.prod(axes, keepDims));
  }

  @Override
  public PtNDArray mean() {
    return guard(super.mean());
  }

  @Override
  public PtNDArray mean(int[] axes, boolean keepDims) {
    return guard(super.mean(axes, keepDims));
  }

  @Override
  public NDList unique(Integer dim, boolean sorted, boolean returnInverse, boolean returnCounts) {
    return guard(super.unique(dim, sorted, returnInverse, returnCounts));
  }

  @Override
  public PtNDArray argSort(int axis, boolean ascending) {
    return guard(super.argSort(axis, ascending));
  }

  @Override
  public PtNDArray sort(int axis) {
    return guard(super.sort(axis));
  }

  @Override
  public PtNDArray cumSum(int axis) {
    return guard(super.cumSum(axis));
  }

  @Override
  public PtNDArray argMax() {
    return guard(super.argMax());
  }

  @Override
  public PtNDArray argMax(int axis) {
    return guard(super.argMax(axis));
  }

  @Override
  public NDList topK(int k, int axis, boolean largest, boolean sorted) {
    return guard(super.topK(k, axis, largest, sorted));
  }

  @Override
  public PtNDArray argMin() {
    return guard(super.argMin());
  }

  @Override
  public PtNDArray argMin(int axis) {
    return guard(super.argMin(axis));
  }

  @Override
  public PtNDArray percentile(Number percentile, int[] axes) {
    return guard(super.percentile(percentile, axes));
  }

  @Override
  public PtNDArray median(int[] axes) {
    return guard(super.median(axes));
  }

  @Override
  public PtNDArray nonzero() {
    return guard(super.nonzero());
  }

  @Override
  public NDArray norm(boolean keepDims) {
    return guard(super.norm(keepDims));
  }

  @Override
  public NDArray norm(int order, int[] axes, boolean keepDims) {
    return guard(super.norm(order, axes, keepDims));
  }

  @Override
  public NDArray diff(int n, int dim) {
    return guard(super.diff(n, dim));
  }
}
