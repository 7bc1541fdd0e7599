package ai.djl.pytorch.engine;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.nn.recurrent.RNN;
import dev.gantry.djl.internal.GantryNDArray;
import java.util.List;

/// The operations that DJL's blocks call, their results guarded: see [GantryNDArray].
///
/// In DJL's package because its constructor is visible only there.
public final class GuardedNDArrayEx extends PtNDArrayEx {
  public GuardedNDArrayEx(GantryNDArray array) {
    super(array);
  }

  @Override
  public PtNDArray relu() {
    return GantryNDArray.guard(super.relu());
  }

  @Override
  public PtNDArray sigmoid() {
    return GantryNDArray.guard(super.sigmoid());
  }

  @Override
  public PtNDArray tanh() {
    return GantryNDArray.guard(super.tanh());
  }

  @Override
  public PtNDArray softPlus() {
    return GantryNDArray.guard(super.softPlus());
  }

  @Override
  public PtNDArray softSign() {
    return GantryNDArray.guard(super.softSign());
  }

  @Override
  public PtNDArray leakyRelu(float alpha) {
    return GantryNDArray.guard(super.leakyRelu(alpha));
  }

  @Override
  public PtNDArray elu(float alpha) {
    return GantryNDArray.guard(super.elu(alpha));
  }

  @Override
  public PtNDArray selu() {
    return GantryNDArray.guard(super.selu());
  }

  @Override
  public PtNDArray gelu() {
    return GantryNDArray.guard(super.gelu());
  }

  @Override
  public PtNDArray maxPool(Shape kernelShape, Shape stride, Shape padding, boolean ceilMode) {
    return GantryNDArray.guard(super.maxPool(kernelShape, stride, padding, ceilMode));
  }

  @Override
  public PtNDArray globalMaxPool() {
    return GantryNDArray.guard(super.globalMaxPool());
  }

  @Override
  public PtNDArray avgPool(
      Shape kernelShape, Shape stride, Shape padding, boolean ceilMode, boolean countIncludePad) {
    return GantryNDArray.guard(
        super.avgPool(kernelShape, stride, padding, ceilMode, countIncludePad));
  }

  @Override
  public PtNDArray globalAvgPool() {
    return GantryNDArray.guard(super.globalAvgPool());
  }

  @Override
  public PtNDArray lpPool(
      float normType, Shape kernelShape, Shape stride, Shape padding, boolean ceilMode) {
    return GantryNDArray.guard(super.lpPool(normType, kernelShape, stride, padding, ceilMode));
  }

  @Override
  public PtNDArray globalLpPool(float normType) {
    return GantryNDArray.guard(super.globalLpPool(normType));
  }

  @Override
  public NDList convolution(
      NDArray input,
      NDArray weight,
      NDArray bias,
      Shape stride,
      Shape padding,
      Shape dilation,
      int groups) {
    return GantryNDArray.guard(
        super.convolution(input, weight, bias, stride, padding, dilation, groups));
  }

  @Override
  public NDList linear(NDArray input, NDArray weight, NDArray bias) {
    return GantryNDArray.guard(super.linear(input, weight, bias));
  }

  @Override
  public NDList embedding(NDArray input, NDArray weight, SparseFormat sparseFormat) {
    return GantryNDArray.guard(super.embedding(input, weight, sparseFormat));
  }

  @Override
  public NDList dropout(NDArray input, float rate, boolean training) {
    return GantryNDArray.guard(super.dropout(input, rate, training));
  }

  @Override
  public NDList layerNorm(
      NDArray input, Shape normalizedShape, NDArray gamma, NDArray beta, float eps) {
    return GantryNDArray.guard(super.layerNorm(input, normalizedShape, gamma, beta, eps));
  }

  @Override
  public NDList batchNorm(
      NDArray input,
      NDArray runningMean,
      NDArray runningVar,
      NDArray gamma,
      NDArray beta,
      int axis,
      float momentum,
      float eps,
      boolean training) {
    return GantryNDArray.guard(
        super.batchNorm(
            input, runningMean, runningVar, gamma, beta, axis, momentum, eps, training));
  }

  @Override
  public NDList rnn(
      NDArray input,
      NDArray state,
      NDList params,
      boolean hasBiases,
      int numLayers,
      RNN.Activation activation,
      double dropRate,
      boolean training,
      boolean bidirectional,
      boolean batchFirst) {
    return GantryNDArray.guard(
        super.rnn(
            input,
            state,
            params,
            hasBiases,
            numLayers,
            activation,
            dropRate,
            training,
            bidirectional,
            batchFirst));
  }

  @Override
  public NDList gru(
      NDArray input,
      NDArray state,
      NDList params,
      boolean hasBiases,
      int numLayers,
      double dropRate,
      boolean training,
      boolean bidirectional,
      boolean batchFirst) {
    return GantryNDArray.guard(
        super.gru(
            input,
            state,
            params,
            hasBiases,
            numLayers,
            dropRate,
            training,
            bidirectional,
            batchFirst));
  }

  @Override
  public NDList lstm(
      NDArray input,
      NDList states,
      NDList params,
      boolean hasBiases,
      int numLayers,
      double dropRate,
      boolean training,
      boolean bidirectional,
      boolean batchFirst) {
    return GantryNDArray.guard(
        super.lstm(
            input,
            states,
            params,
            hasBiases,
            numLayers,
            dropRate,
            training,
            bidirectional,
            batchFirst));
  }

  @Override
  public NDArray interpolation(long[] size, int mode, boolean alignCorners) {
    return GantryNDArray.guard(super.interpolation(size, mode, alignCorners));
  }

  @Override
  public PtNDArray where(NDArray condition, NDArray other) {
    return GantryNDArray.guard(super.where(condition, other));
  }

  @Override
  public PtNDArray stack(NDList arrays, int axis) {
    return GantryNDArray.guard(super.stack(arrays, axis));
  }

  @Override
  public PtNDArray concat(NDList list, int axis) {
    return GantryNDArray.guard(super.concat(list, axis));
  }

  @Override
  public NDList multiBoxPrior(
      List<Float> sizes, List<Float> ratios, List<Float> steps, List<Float> offsets, boolean clip) {
    return GantryNDArray.guard(super.multiBoxPrior(sizes, ratios, steps, offsets, clip));
  }

  @Override
  public NDList multiBoxDetection(
      NDList inputs,
      boolean clip,
      float threshold,
      int backgroundId,
      float nmsThreshold,
      boolean forceSuppress,
      int nmsTopK) {
    return GantryNDArray.guard(
        super.multiBoxDetection(
            inputs, clip, threshold, backgroundId, nmsThreshold, forceSuppress, nmsTopK));
  }

  @Override
  public PtNDArray resize(int width, int height, int interpolation) {
    DataType type = getArray().getDataType();
    if (type == DataType.FLOAT32) {
      return GantryNDArray.guard(super.resize(width, height, interpolation));
    }
    // DJL casts back to the type by an array of its own, which only knows some.
    try (PtNDArray floats = getArray().toType(DataType.FLOAT32, true);
        PtNDArray resized = floats.getNDArrayInternal().resize(width, height, interpolation)) {
      return resized.toType(type, true);
    }
  }

  @Override
  public NDArray rdiv(Number n) {
    return rdiv(number(n));
  }

  @Override
  public NDArray rdiv(NDArray b) {
    return GantryNDArray.guard(super.rdiv(b));
  }

  @Override
  public NDArray rdivi(Number n) {
    return rdivi(number(n));
  }

  @Override
  public NDArray rsub(NDArray b) {
    return GantryNDArray.guard(super.rsub(b));
  }

  @Override
  public NDArray rmod(Number n) {
    return rmod(number(n));
  }

  @Override
  public NDArray rmod(NDArray b) {
    return GantryNDArray.guard(super.rmod(b));
  }

  @Override
  public NDArray rmodi(Number n) {
    return rmodi(number(n));
  }

  @Override
  public NDArray rpow(Number n) {
    return number(n).pow(getArray());
  }

  /// A scalar of the array's own type, which DJL makes by a cast that only knows some.
  private NDArray number(Number n) {
    return GantryNDArray.guard(getArray().getManager().create(n))
        .toType(getArray().getDataType(), false);
  }
}
