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

/// The rotary embedding. Angles grow with position: `position / theta^(2i / size)`, with long waves stretched.
///
/// @param size how many elements of a head are turned, from the first; even
/// @param strength by which cosines and sines are multiplied
public record Rotation(double theta, int size, double strength, Kind kind) {
  /// Says how waves are stretched.
  public sealed interface Kind {
    /// Returns what wave `i`, of `plain` radians a token, has in a text of `length` tokens.
    double frequency(Rotation rotation, int i, double plain, long length);

    /// Whether a text that grows from one length to another must be turned anew from its first token.
    default boolean changes(long from, long to) {
      return false;
    }
  }

  /// Stretches all waves by a factor; 1 for none.
  public record Linear(double factor) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      return plain / factor;
    }
  }

  /// Grows `theta` with texts that are longer than `longest`.
  public record Dynamic(double factor, double longest) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      double size = rotation.size();
      double growth = factor * Math.max((double) length, longest) / longest - (factor - 1);
      return 1 / Math.pow(rotation.theta() * Math.pow(growth, size / (size - 2)), 2 * i / size);
    }
  }

  /// Stretches waves longer than `original / low` by a factor, and those longer than `original / high` in part.
  ///
  /// @param original the longest text of the first training
  public record ByLength(double factor, double low, double high, double original) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      double kept = Math.clamp((original * plain / (2 * Math.PI) - low) / (high - low), 0.0, 1.0);
      return plain * (kept + (1 - kept) / factor);
    }
  }

  /// Stretches waves behind number `high` by a factor, and those behind `low` in part.
  public record ByNumber(double factor, double low, double high) implements Kind {
    @Override
    public double frequency(Rotation rotation, int i, double plain, long length) {
      double stretched = Math.clamp((i - low) / (high - low), 0.0, 1.0);
      return plain * (1 - stretched + stretched / factor);
    }
  }

  /// Stretches each wave by a factor of its own.
  ///
  /// @param beyond the factors for texts of more than `original` tokens
  /// @param anew whether a text that becomes so long is turned anew from its first token, and not only what follows
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

  /// A rotary embedding that stretches all waves by `factor`.
  public static Rotation linear(double theta, int size, double factor) {
    return new Rotation(theta, size, 1, new Linear(factor));
  }

  /// @param length of the text, the tokens before included
  public float[] frequencies(long length) {
    float[] frequencies = new float[size / 2];
    for (int i = 0; i < frequencies.length; i++) {
      double plain = (float) (1 / Math.pow(theta, 2.0 * i / size));
      frequencies[i] = (float) kind.frequency(this, i, plain, length);
    }
    return frequencies;
  }

  /// Turns queries and keys at the positions that follow `pasts`.
  ///
  /// @param pasts how many tokens there are before these in each text, or one number for all texts
  /// @param ahead how many tokens each text grows by, these included
  /// @param like has the type and device of the result
  public Turn at(NDManager manager, long[] pasts, int length, long ahead, NDArray like) {
    int waves = size / 2;
    float[] cosines = new float[pasts.length * length * waves];
    float[] sines = new float[cosines.length];
    int place = 0;
    for (long past : pasts) {
      float[] frequencies = frequencies(past + ahead);
      for (int i = 0; i < length * waves; i++) {
        // Computes angles in 32 bits, as the reference does.
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

  /// Turns each pair of an element of the first half and its counterpart of the second by the angle of the
  /// position. Elements behind these are left as they are.
  ///
  /// @param cosines `[batch or 1, 1, length, size / 2]`, as `sines`
  public record Turn(NDArray cosines, NDArray sines) {
    /// @param heads `[batch, length, heads, size]`
    /// @param fused whether one launch of a GPU may turn them, which leaves no gradients
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
