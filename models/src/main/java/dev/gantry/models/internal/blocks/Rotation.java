// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.blocks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import dev.gantry.djl.internal.ndarray.FusedRows;
import java.util.List;
import java.util.Optional;

/// The rotary embedding. At a position, wave `i` turns by the angle `position / theta^(2i /
/// size)`; long waves are stretched, which divides their frequency.
///
/// @param size how many elements of a head are turned, counted from the first; an even number
/// @param strength the factor of cosines and sines
public record Rotation(double theta, int size, double strength, Kind kind) {
  /// Says how the frequencies of the waves are changed.
  public sealed interface Kind {
    /// Returns the frequency of wave `i` in a text of `length` tokens; `plain` is its unchanged
    /// frequency in radians per token.
    double frequency(Rotation rotation, int i, double plain, long length);

    /// Whether the tokens of a text that grows from one length to another must be turned again
    /// from the first token.
    default boolean changes(long from, long to) {
      return false;
    }
  }

  /// Divides all frequencies by `factor`; 1 leaves them unchanged.
  public record Linear(double factor) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      return plain / factor;
    }
  }

  /// Increases `theta` with the length of texts that are longer than `longest`.
  public record Dynamic(double factor, double longest) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      double size = rotation.size();
      double growth = factor * Math.max((double) length, longest) / longest - (factor - 1);
      return 1 / Math.pow(rotation.theta() * Math.pow(growth, size / (size - 2)), 2 * i / size);
    }
  }

  /// Divides the frequencies of waves longer than `original / low` by `factor`, and partly those
  /// of waves longer than `original / high`.
  ///
  /// @param original the longest text of the first training, in tokens
  public record ByLength(double factor, double low, double high, double original) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      double kept = Math.clamp((original * plain / (2 * Math.PI) - low) / (high - low), 0.0, 1.0);
      return plain * (kept + (1 - kept) / factor);
    }
  }

  /// Divides the frequencies of the waves after number `high` by `factor`, and partly those of the
  /// waves after `low`.
  public record ByNumber(double factor, double low, double high) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      double stretched = Math.clamp((i - low) / (high - low), 0.0, 1.0);
      return plain * (1 - stretched + stretched / factor);
    }
  }

  /// Divides the frequency of each wave by its own factor.
  ///
  /// @param within the factors for texts of up to `original` tokens
  /// @param beyond the factors for longer texts
  /// @param anew whether a text that exceeds `original` is turned again from its first token;
  ///     otherwise only the later tokens get the other factors
  public record Each(List<Float> within, List<Float> beyond, double original, boolean anew)
      implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      return plain / (length > original ? beyond : within).get(i);
    }

    @Override
    public boolean changes(long from, long to) {
      return anew && from > original != to > original;
    }
  }

  /// Returns a rotary embedding that divides all frequencies by `factor`.
  public static Rotation linear(double theta, int size, double factor) {
    return new Rotation(theta, size, 1, new Linear(factor));
  }

  /// @param length the length of the whole text in tokens
  public float[] frequencies(long length) {
    float[] frequencies = new float[size / 2];
    for (int i = 0; i < frequencies.length; i++) {
      double plain = (float) (1 / Math.pow(theta, 2.0 * i / size));
      frequencies[i] = (float) kind.frequency(this, i, plain, length);
    }
    return frequencies;
  }

  /// Returns the turn of queries and keys at the positions after `pasts`.
  ///
  /// @param pasts for each text, how many tokens come before these; one number if it is the same
  ///     for all texts
  /// @param ahead how many tokens each text grows by, including these tokens
  /// @param like an array that has the type and device of the result
  public Turn at(NDManager manager, long[] pasts, int length, long ahead, NDArray like) {
    int waves = size / 2;
    float[] cosines = new float[pasts.length * length * waves];
    float[] sines = new float[cosines.length];
    int place = 0;
    for (long past : pasts) {
      float[] frequencies = frequencies(past + ahead);
      for (int i = 0; i < length * waves; i++) {
        // The angles are computed in 32 bits, as in the reference.
        float angle = (past + i / waves) * frequencies[i % waves];
        cosines[place] = (float) (Math.cos(angle) * strength);
        sines[place++] = (float) (Math.sin(angle) * strength);
      }
    }
    Shape shape = new Shape(pasts.length, 1, length, waves);
    return new Turn(
        Attention.cast(manager.create(cosines, shape), like),
        Attention.cast(manager.create(sines, shape), like));
  }

  /// Turns each pair of elements by the angle of the position. A pair is an element of the first
  /// half of the turned elements and its counterpart in the second half. Elements after them are
  /// unchanged.
  ///
  /// @param cosines `[batch or 1, 1, length, size / 2]`; `sines` has the same shape
  public record Turn(NDArray cosines, NDArray sines) {
    /// @param heads `[batch, length, heads, size]`
    /// @param fused whether a single GPU kernel may turn the heads, which records no gradients
    /// @return `[batch, heads, length, size]`
    public NDArray of(NDArray heads, boolean fused) {
      Optional<NDArray> launched = fused ? FusedRows.turn(heads, cosines, sines) : Optional.empty();
      NDArray apart = launched.orElse(heads).transpose(0, 2, 1, 3);
      return launched.isPresent() ? apart : turned(apart);
    }

    private NDArray turned(NDArray heads) {
      long turned = 2 * cosines.getShape().get(3);
      long all = heads.getShape().get(3);
      NDArray part = turned == all ? heads : heads.get(new NDIndex("..., :{}", turned));
      NDList halves = part.split(2, 3);
      NDArray first = halves.get(0);
      NDArray second = halves.get(1);
      NDList results =
          new NDList(
              first.mul(cosines).sub(second.mul(sines)), second.mul(cosines).add(first.mul(sines)));
      if (turned < all) {
        results.add(heads.get(new NDIndex("..., {}:", turned)));
      }
      return NDArrays.concat(results, 3);
    }
  }
}
