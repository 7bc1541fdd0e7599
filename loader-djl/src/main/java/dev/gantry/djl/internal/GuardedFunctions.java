package dev.gantry.djl.internal;

import ai.djl.ndarray.NDArray;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;

/// Functions of each element, and transforms of the whole, their results guarded.
abstract class GuardedFunctions extends GuardedArithmetic {
  GuardedFunctions(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  @Override
  public PtNDArray sign() {
    return guard(super.sign());
  }

  @Override
  public PtNDArray neg() {
    return guard(super.neg());
  }

  @Override
  public PtNDArray abs() {
    return guard(super.abs());
  }

  @Override
  public PtNDArray square() {
    return guard(super.square());
  }

  @Override
  public NDArray sqrt() {
    return guard(super.sqrt());
  }

  @Override
  public PtNDArray cbrt() {
    return guard(super.cbrt());
  }

  @Override
  public PtNDArray floor() {
    return guard(super.floor());
  }

  @Override
  public PtNDArray ceil() {
    return guard(super.ceil());
  }

  @Override
  public PtNDArray round() {
    return guard(super.round());
  }

  @Override
  public PtNDArray trunc() {
    return guard(super.trunc());
  }

  @Override
  public PtNDArray exp() {
    return guard(super.exp());
  }

  @Override
  public NDArray gammaln() {
    return guard(super.gammaln());
  }

  @Override
  public PtNDArray log() {
    return guard(super.log());
  }

  @Override
  public PtNDArray log10() {
    return guard(super.log10());
  }

  @Override
  public PtNDArray log2() {
    return guard(super.log2());
  }

  @Override
  public PtNDArray sin() {
    return guard(super.sin());
  }

  @Override
  public PtNDArray cos() {
    return guard(super.cos());
  }

  @Override
  public PtNDArray tan() {
    return guard(super.tan());
  }

  @Override
  public PtNDArray asin() {
    return guard(super.asin());
  }

  @Override
  public PtNDArray acos() {
    return guard(super.acos());
  }

  @Override
  public PtNDArray atan() {
    return guard(super.atan());
  }

  @Override
  public PtNDArray sinh() {
    return guard(super.sinh());
  }

  @Override
  public PtNDArray cosh() {
    return guard(super.cosh());
  }

  @Override
  public PtNDArray tanh() {
    return guard(super.tanh());
  }

  @Override
  public PtNDArray normalize(double p, long dim, double eps) {
    return guard(super.normalize(p, dim, eps));
  }

  @Override
  public NDArray fft(long length, long axis) {
    return guard(super.fft(length, axis));
  }

  @Override
  public NDArray rfft(long length, long axis) {
    return guard(super.rfft(length, axis));
  }

  @Override
  public NDArray ifft(long length, long axis) {
    return guard(super.ifft(length, axis));
  }

  @Override
  public NDArray irfft(long length, long axis) {
    return guard(super.irfft(length, axis));
  }

  @Override
  public NDArray stft(
      long nFft,
      long hopLength,
      boolean center,
      NDArray window,
      boolean normalize,
      boolean returnComplex) {
    return guard(super.stft(nFft, hopLength, center, window, normalize, returnComplex));
  }

  @Override
  public NDArray fft2(long[] sizes, long[] axes) {
    return guard(super.fft2(sizes, axes));
  }

  @Override
  public NDArray ifft2(long[] sizes, long[] axes) {
    return guard(super.ifft2(sizes, axes));
  }

  @Override
  public PtNDArray logicalNot() {
    return guard(super.logicalNot());
  }

  @Override
  public PtNDArray isInfinite() {
    return guard(super.isInfinite());
  }

  @Override
  public PtNDArray isNaN() {
    return guard(super.isNaN());
  }

  @Override
  public PtNDArray clip(Number min, Number max) {
    return guard(super.clip(min, max));
  }

  @Override
  public PtNDArray erfinv() {
    return guard(super.erfinv());
  }

  @Override
  public PtNDArray erf() {
    return guard(super.erf());
  }

  @Override
  public PtNDArray inverse() {
    return guard(super.inverse());
  }

  @Override
  public NDArray complex() {
    return guard(super.complex());
  }

  @Override
  public NDArray real() {
    return guard(super.real());
  }

  @Override
  public NDArray conj() {
    return guard(super.conj());
  }
}
