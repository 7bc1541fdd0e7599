// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import java.util.Arrays;
import java.util.List;

/// The texts of one pass. Shorter texts are padded on the right to the length of the longest.
///
/// @param prompt how many tokens at the beginning of each text pooling leaves out
/// @param longest the number of tokens of the longest text
public record TokenBatch(List<Tokens> texts, int prompt, int longest) {
  static TokenBatch of(List<Tokens> texts, int prompt) {
    return new TokenBatch(
        texts, prompt, texts.stream().mapToInt(Tokens::length).max().orElseThrow());
  }

  int size() {
    return texts.size();
  }

  boolean padded() {
    return texts.stream().anyMatch(text -> text.length() < longest);
  }

  /// Makes the model's inputs, by the hub's names. Types are left out if all are 0, and the mask
  /// if nothing is padded: a missing input means the same, and blocks are faster without it.
  ///
  /// @param padding the id of the token that fills the rows
  NDList inputs(NDManager manager, long padding) {
    long[] ids = new long[size() * longest];
    long[] mask = new long[ids.length];
    long[] types = new long[ids.length];
    Arrays.fill(ids, padding);
    for (int row = 0; row < size(); row++) {
      Tokens text = texts.get(row);
      int start = row * longest;
      System.arraycopy(text.ids, 0, ids, start, text.length());
      System.arraycopy(text.types, 0, types, start, text.length());
      Arrays.fill(mask, start, start + text.length(), 1);
    }
    boolean typed = Arrays.stream(types).anyMatch(type -> type != 0);
    NDList inputs = new NDList(array(manager, "input_ids", ids));
    if (padded()) {
      inputs.add(array(manager, "attention_mask", mask));
    }
    if (typed) {
      inputs.add(array(manager, "token_type_ids", types));
    }
    return inputs;
  }

  private NDArray array(NDManager manager, String name, long... values) {
    NDArray array = manager.create(values, new Shape(size(), longest));
    array.setName(name);
    return array;
  }
}
