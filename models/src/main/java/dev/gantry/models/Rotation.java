// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import java.util.List;

/// The rotary embedding. Its angles grow with position: `position / theta^(2i / headSize)`, with long waves stretched.
///
/// @param factor by which waves are stretched; 1 for none
/// @param low waves longer than `original / low` are stretched by the factor
/// @param high waves shorter than `original / high` are not stretched; those between are stretched in part
/// @param original the longest text of the first training
/// @param stretches factors by which each wave is stretched besides; none for no such factors
record Rotation(
    double theta, double factor, double low, double high, double original, List<Float> stretches) {
  Rotation {
    stretches = List.copyOf(stretches);
  }

  /// Makes a rotary embedding that stretches all waves by `factor`.
  static Rotation linear(double theta, double factor) {
    return new Rotation(theta, factor, 1, 2, 0, List.of());
  }

  /// This, with each wave stretched by a factor of its own.
  Rotation stretched(List<Float> by) {
    return new Rotation(theta, factor, low, high, original, by);
  }

  float[] frequencies(int headSize) {
    float[] frequencies = new float[headSize / 2];
    for (int i = 0; i < frequencies.length; i++) {
      double plain = (float) (1 / Math.pow(theta, 2.0 * i / headSize));
      double waves = original * plain / (2 * Math.PI);
      double kept = Math.clamp((waves - low) / (high - low), 0.0, 1.0);
      double stretch = stretches.isEmpty() ? 1 : stretches.get(i);
      frequencies[i] = (float) (plain * (kept + (1 - kept) / factor) / stretch);
    }
    return frequencies;
  }

  /// Turns each pair of an element of the first half and its counterpart of the second by the angle of
  /// the position.
  ///
  /// @param cosines `[1, 1, length, headSize / 2]`, as `sines`
  record Turn(NDArray cosines, NDArray sines) {
    /// @param past how many tokens there are before these
    /// @param like has the type and device of the result
    static Turn at(NDManager manager, float[] frequencies, long past, int length, NDArray like) {
      float[] cosines = new float[length * frequencies.length];
      float[] sines = new float[cosines.length];
      for (int i = 0; i < cosines.length; i++) {
        // Computes angles in 32 bits, as the reference does.
        float angle = (past + i / frequencies.length) * frequencies[i % frequencies.length];
        cosines[i] = (float) Math.cos(angle);
        sines[i] = (float) Math.sin(angle);
      }
      Shape shape = new Shape(1, 1, length, frequencies.length);
      return new Turn(
          Attention.cast(manager.create(cosines, shape), like),
          Attention.cast(manager.create(sines, shape), like));
    }

    NDArray of(NDArray heads) {
      NDList halves = heads.split(2, 3);
      NDArray first = halves.get(0);
      NDArray second = halves.get(1);
      return NDArrays.concat(
          new NDList(
              first.mul(cosines).sub(second.mul(sines)), second.mul(cosines).add(first.mul(sines))),
          3);
    }
  }
}
