// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

/// A resampling kernel: the weight of a pixel by its distance, in pixels of the larger picture.
public enum Kernel {
  BILINEAR(1),

  /// Keys' cubic convolution, with a = -1/2.
  BICUBIC(2);

  private final double support;

  Kernel(double support) {
    this.support = support;
  }

  /// The distance from which on pixels do not count.
  double support() {
    return support;
  }

  /// @param x the distance, 0 or more
  double at(double x) {
    if (x >= support) {
      return 0;
    }
    return switch (this) {
      case BILINEAR -> 1 - x;
      case BICUBIC -> x < 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2;
    };
  }
}
