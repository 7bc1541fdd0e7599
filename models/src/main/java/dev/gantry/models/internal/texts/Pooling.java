// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import java.util.Arrays;
import java.util.List;

/// The modes that turn the hidden states of a text's tokens into one vector. All modes except
/// [#MAX] are weighted sums. Their weights are computed on the host and applied by one matrix
/// product.
public enum Pooling {
  /// The first token's state.
  CLS("cls", "cls_token"),
  /// The largest value of each element.
  MAX("max", "max_tokens"),
  /// The mean of the states.
  MEAN("mean", "mean_tokens"),
  /// The sum of the states, divided by the square root of their number.
  MEAN_SQRT_LEN("mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
  /// The mean with weights 1, 2, 3 and so on, by the token's position.
  WEIGHTEDMEAN("weightedmean", "weightedmean_tokens"),
  /// The last token's state.
  LASTTOKEN("lasttoken", "lasttoken");

  /// The mode's name in newer files.
  public final String word;

  /// The suffix of the key by which older files turn the mode on. The vectors of several modes
  /// come in the order of this enumeration.
  public final String flag;

  Pooling(String word, String flag) {
    this.word = word;
    this.flag = flag;
  }

  /// Makes the arrays for [#pooled]: the weights of sums, and a mask that keeps padding from being
  /// the largest value. They are made before the pass.
  public static NDList arrays(NDManager manager, List<Pooling> modes, TokenBatch batch) {
    NDList arrays = new NDList();
    List<Pooling> sums = sums(modes);
    if (!sums.isEmpty()) {
      arrays.add(weights(manager, sums, batch));
    }
    if (modes.contains(MAX)) {
      arrays.add(away(manager, batch));
    }
    return arrays;
  }

  private static List<Pooling> sums(List<Pooling> modes) {
    return modes.stream().filter(mode -> mode != MAX).toList();
  }

  /// @param states FLOAT32 `[batch, length, width]`
  /// @param arrays the result of [#arrays]
  /// @return `[batch, modes · width]`: the vectors of all modes, in their order
  public static NDArray pooled(NDArray states, List<Pooling> modes, NDList arrays) {
    NDList vectors = new NDList();
    int sums = sums(modes).size();
    if (sums > 0) {
      vectors.addAll(arrays.getFirst().matMul(states).split(sums, 1));
    }
    if (modes.contains(MAX)) {
      vectors.add(modes.indexOf(MAX), states.add(arrays.getLast()).max(new int[] {1}, true));
    }
    return NDArrays.concat(vectors, 2).reshape(states.getShape().get(0), -1);
  }

  private static NDArray away(NDManager manager, TokenBatch batch) {
    float[] away = new float[batch.size() * batch.longest()];
    Arrays.fill(away, Float.NEGATIVE_INFINITY);
    for (int row = 0; row < batch.size(); row++) {
      int length = batch.texts().get(row).length();
      int start = row * batch.longest();
      Arrays.fill(away, start + Math.min(batch.prompt(), length), start + length, 0);
    }
    return manager.create(away, new Shape(batch.size(), batch.longest(), 1));
  }

  private static NDArray weights(NDManager manager, List<Pooling> modes, TokenBatch batch) {
    float[] weights = new float[batch.size() * modes.size() * batch.longest()];
    int start = 0;
    for (Tokens text : batch.texts()) {
      for (Pooling mode : modes) {
        mode.weigh(weights, start, batch.prompt(), text.length());
        start += batch.longest();
      }
    }
    return manager.create(weights, new Shape(batch.size(), modes.size(), batch.longest()));
  }

  /// Writes the weights of the tokens from `first` to `length`, exclusive. If a text consists only
  /// of the prompt, no token is left: its sums are 0, and its first token counts as `CLS`, as in
  /// the library that writes these files.
  private void weigh(float[] weights, int start, int first, int length) {
    int count = Math.max(0, length - first);
    if (this == CLS) {
      weights[start + (count == 0 ? 0 : first)] = 1;
      return;
    }
    double places = (length + first + 1.0) * count / 2;
    for (int i = first; i < length; i++) {
      weights[start + i] =
          (float)
              switch (this) {
                case MEAN -> 1.0 / count;
                case MEAN_SQRT_LEN -> 1 / Math.sqrt(count);
                case WEIGHTEDMEAN -> (i + 1) / places;
                case LASTTOKEN -> i == length - 1 ? 1 : 0;
                case CLS, MAX -> 0;
              };
    }
  }
}
