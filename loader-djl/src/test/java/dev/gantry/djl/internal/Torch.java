package dev.gantry.djl.internal;

/// libtorch as the tests load it: DJL's own, for the CPU.
final class Torch {
  static final TorchLibrary LIBRARY = PyTorch.library();

  private Torch() {}
}
