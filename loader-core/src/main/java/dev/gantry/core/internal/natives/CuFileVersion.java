// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

/// The version of libcufile; not the CUDA toolkit's that it came with.
public record CuFileVersion(int major, int minor) {
  /// Reads what `cuFileGetVersion` gives: 1000 × major + 10 × minor.
  static CuFileVersion of(int number) {
    return new CuFileVersion(number / 1000, number % 1000 / 10);
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}
