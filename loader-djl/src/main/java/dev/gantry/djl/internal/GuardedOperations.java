package dev.gantry.djl.internal;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDArrayIndexer;
import ai.djl.ndarray.internal.NDArrayEx;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.nn.recurrent.RNN;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDArrayEx;
import java.util.List;

/// The operations that DJL's blocks call, their results guarded: see [GantryNDArray].
final class GuardedOperations implements NDArrayEx {
  private final GantryNDArray array;
  private final PtNDArrayEx plain;

  /// @param plain DJL's own operations of `array`
  GuardedOperations(GantryNDArray array, PtNDArrayEx plain) {
    this.array = array;
    this.plain = plain;
  }

  @Override
  public PtNDArray relu() {
    return GantryNDArray.guard(plain.relu());
  }

  @Override
  public PtNDArray sigmoid() {
    return GantryNDArray.guard(plain.sigmoid());
  }

  @Override
  public PtNDArray tanh() {
    return GantryNDArray.guard(plain.tanh());
  }

  @Override
  public PtNDArray softPlus() {
    return GantryNDArray.guard(plain.softPlus());
  }

  @Override
  public PtNDArray softSign() {
    return GantryNDArray.guard(plain.softSign());
  }

  @Override
  public PtNDArray leakyRelu(float alpha) {
    return GantryNDArray.guard(plain.leakyRelu(alpha));
  }

  @Override
  public PtNDArray elu(float alpha) {
    return GantryNDArray.guard(plain.elu(alpha));
  }

  @Override
  public PtNDArray selu() {
    return GantryNDArray.guard(plain.selu());
  }

  @Override
  public PtNDArray gelu() {
    return GantryNDArray.guard(plain.gelu());
  }

  @Override
  public PtNDArray maxPool(Shape kernelShape, Shape stride, Shape padding, boolean ceilMode) {
    return GantryNDArray.guard(plain.maxPool(kernelShape, stride, padding, ceilMode));
  }

  @Override
  public PtNDArray globalMaxPool() {
    return GantryNDArray.guard(plain.globalMaxPool());
  }

  @Override
  public PtNDArray avgPool(
      Shape kernelShape, Shape stride, Shape padding, boolean ceilMode, boolean countIncludePad) {
    return GantryNDArray.guard(
        plain.avgPool(kernelShape, stride, padding, ceilMode, countIncludePad));
  }

  @Override
  public PtNDArray globalAvgPool() {
    return GantryNDArray.guard(plain.globalAvgPool());
  }

  @Override
  public PtNDArray lpPool(
      float normType, Shape kernelShape, Shape stride, Shape padding, boolean ceilMode) {
    return GantryNDArray.guard(plain.lpPool(normType, kernelShape, stride, padding, ceilMode));
  }

  @Override
  public PtNDArray globalLpPool(float normType) {
    return GantryNDArray.guard(plain.globalLpPool(normType));
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
        plain.convolution(input, weight, bias, stride, padding, dilation, groups));
  }

  @Override
  public NDList linear(NDArray input, NDArray weight, NDArray bias) {
    return GantryNDArray.guard(plain.linear(input, weight, bias));
  }

  @Override
  public NDList embedding(NDArray input, NDArray weight, SparseFormat sparseFormat) {
    return GantryNDArray.guard(plain.embedding(input, weight, sparseFormat));
  }

  @Override
  public NDList dropout(NDArray input, float rate, boolean training) {
    return GantryNDArray.guard(plain.dropout(input, rate, training));
  }

  @Override
  public NDList layerNorm(
      NDArray input, Shape normalizedShape, NDArray gamma, NDArray beta, float eps) {
    return GantryNDArray.guard(plain.layerNorm(input, normalizedShape, gamma, beta, eps));
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
        plain.batchNorm(
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
        plain.rnn(
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
        plain.gru(
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
        plain.lstm(
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
    return GantryNDArray.guard(plain.interpolation(size, mode, alignCorners));
  }

  @Override
  public PtNDArray where(NDArray condition, NDArray other) {
    return GantryNDArray.guard(plain.where(condition, other));
  }

  @Override
  public PtNDArray stack(NDList arrays, int axis) {
    return GantryNDArray.guard(plain.stack(arrays, axis));
  }

  @Override
  public PtNDArray concat(NDList list, int axis) {
    return GantryNDArray.guard(plain.concat(list, axis));
  }

  @Override
  public NDList multiBoxPrior(
      List<Float> sizes, List<Float> ratios, List<Float> steps, List<Float> offsets, boolean clip) {
    return GantryNDArray.guard(plain.multiBoxPrior(sizes, ratios, steps, offsets, clip));
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
        plain.multiBoxDetection(
            inputs, clip, threshold, backgroundId, nmsThreshold, forceSuppress, nmsTopK));
  }

  @Override
  public PtNDArray resize(int width, int height, int interpolation) {
    DataType type = array.getDataType();
    if (type == DataType.FLOAT32) {
      return GantryNDArray.guard(plain.resize(width, height, interpolation));
    }
    // DJL casts back to the type by an array of its own, which only knows some.
    try (PtNDArray floats = array.toType(DataType.FLOAT32, true);
        PtNDArray resized =
            GantryNDArray.guard(floats.getNDArrayInternal().resize(width, height, interpolation))) {
      return resized.toType(type, true);
    }
  }

  @Override
  public NDArray rdiv(Number n) {
    return rdiv(number(n));
  }

  @Override
  public NDArray rdiv(NDArray b) {
    return GantryNDArray.guard(plain.rdiv(b));
  }

  @Override
  public NDArray rdivi(Number n) {
    return rdivi(number(n));
  }

  @Override
  public NDArray rsub(NDArray b) {
    return GantryNDArray.guard(plain.rsub(b));
  }

  @Override
  public NDArray rmod(Number n) {
    return rmod(number(n));
  }

  @Override
  public NDArray rmod(NDArray b) {
    return GantryNDArray.guard(plain.rmod(b));
  }

  @Override
  public NDArray rmodi(Number n) {
    return rmodi(number(n));
  }

  @Override
  public NDArray rpow(Number n) {
    return number(n).pow(array);
  }

  /// A scalar of the array's own type, which DJL makes by a cast that only knows some.
  private NDArray number(Number n) {
    return GantryNDArray.guard(array.getManager().create(n)).toType(array.getDataType(), false);
  }

  @Override
  public NDArray rdivi(NDArray b) {
    return plain.rdivi(b);
  }

  @Override
  public NDArray rmodi(NDArray b) {
    return plain.rmodi(b);
  }

  @Override
  public NDArray rpowi(Number n) {
    return plain.rpowi(n);
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
    plain.adadeltaUpdate(inputs, weights, weightDecay, rescaleGrad, clipGrad, rho, epsilon);
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
    plain.adagradUpdate(inputs, weights, learningRate, weightDecay, rescaleGrad, clipGrad, epsilon);
  }

  @Override
  public void adamUpdate(
      NDList inputs,
      NDList weights,
      float learningRate,
      float learningRateBiasCorrection,
      float weightDecay,
      float rescaleGrad,
      float clipGrad,
      float beta1,
      float beta2,
      float epsilon,
      boolean lazyUpdate,
      boolean adamw) {
    plain.adamUpdate(
        inputs,
        weights,
        learningRate,
        learningRateBiasCorrection,
        weightDecay,
        rescaleGrad,
        clipGrad,
        beta1,
        beta2,
        epsilon,
        lazyUpdate,
        adamw);
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
    plain.nagUpdate(inputs, weights, learningRate, weightDecay, rescaleGrad, clipGrad, momentum);
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
    plain.rmspropUpdate(
        inputs,
        weights,
        learningRate,
        weightDecay,
        rescaleGrad,
        clipGrad,
        rho,
        momentum,
        epsilon,
        centered);
  }

  @Override
  public void sgdUpdate(
      NDList inputs,
      NDList weights,
      float learningRate,
      float weightDecay,
      float rescaleGrad,
      float clipGrad,
      float momentum,
      boolean lazyUpdate) {
    plain.sgdUpdate(
        inputs, weights, learningRate, weightDecay, rescaleGrad, clipGrad, momentum, lazyUpdate);
  }

  @Override
  public NDList deconvolution(
      NDArray input,
      NDArray weight,
      NDArray bias,
      Shape stride,
      Shape padding,
      Shape outPadding,
      Shape dilation,
      int groups) {
    return GantryNDArray.guard(
        plain.deconvolution(input, weight, bias, stride, padding, outPadding, dilation, groups));
  }

  @Override
  public NDList prelu(NDArray input, NDArray alpha) {
    return GantryNDArray.guard(plain.prelu(input, alpha));
  }

  @Override
  public NDArray randomFlipLeftRight() {
    return GantryNDArray.guard(plain.randomFlipLeftRight());
  }

  @Override
  public NDArray randomFlipTopBottom() {
    return GantryNDArray.guard(plain.randomFlipTopBottom());
  }

  @Override
  public NDArray randomBrightness(float brightness) {
    return GantryNDArray.guard(plain.randomBrightness(brightness));
  }

  @Override
  public NDArray randomHue(float hue) {
    return GantryNDArray.guard(plain.randomHue(hue));
  }

  @Override
  public NDArray randomColorJitter(float brightness, float contrast, float saturation, float hue) {
    return GantryNDArray.guard(plain.randomColorJitter(brightness, contrast, saturation, hue));
  }

  @Override
  public NDArrayIndexer getIndexer(NDManager manager) {
    return plain.getIndexer(manager);
  }

  @Override
  public NDList multiBoxTarget(
      NDList inputs,
      float iouThreshold,
      float ignoreLabel,
      float negativeMiningRatio,
      float negativeMiningThreshold,
      int minNegativeSamples) {
    return GantryNDArray.guard(
        plain.multiBoxTarget(
            inputs,
            iouThreshold,
            ignoreLabel,
            negativeMiningRatio,
            negativeMiningThreshold,
            minNegativeSamples));
  }

  @Override
  public NDArray getArray() {
    return array;
  }
}
