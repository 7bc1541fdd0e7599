// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

/// The libtorch of the tests, which is DJL's own for the CPU.
public final class Torch {
  public static final TorchLibrary LIBRARY = PyTorch.library();

  private Torch() {}
}
