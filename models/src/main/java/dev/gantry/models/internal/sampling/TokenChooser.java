// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.sampling;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/// Chooses the token that follows each text of a batch. The division and the softmax of the scores
/// run on their device; only the probabilities are copied to the CPU. Not thread-safe.
public final class TokenChooser {
  /// Scores that are divided by less might overflow; the best token already gets the whole
  /// probability.
  private static final double LEAST_TEMPERATURE = 1e-30;

  private final Sampling how;
  private final List<RandomGenerator> randoms;
  private final List<Set<Long>> seen = new ArrayList<>();
  private @Nullable TokenSampler sampler;

  /// @param randoms one generator for each text, so that a text of a batch gets the same tokens as
  ///     it would get alone
  public TokenChooser(Sampling how, List<RandomGenerator> randoms) {
    this.how = how;
    this.randoms = randoms;
    randoms.forEach(_ -> seen.add(new TreeSet<>()));
  }

  /// Records tokens that a text already has.
  public void saw(int text, long... tokens) {
    if (how.penalty() != 1) {
      for (long token : tokens) {
        seen.get(text).add(token);
      }
    }
  }

  /// @param scores `[batch, vocabulary]`
  public long[] next(NDArray scores) {
    NDArray penalised = how.penalty() == 1 ? scores : penalised(scores);
    if (how.isGreedy()) {
      return penalised.argMax(-1).toLongArray();
    }
    int vocabulary = Math.toIntExact(scores.getShape().get(1));
    if (sampler == null) {
      sampler = new TokenSampler(how, vocabulary);
    }
    NDArray floats = penalised.toType(DataType.FLOAT32, false);
    double temperature = Math.max(how.temperature(), LEAST_TEMPERATURE);
    NDArray divided = temperature == 1 ? floats : floats.div(temperature);
    FloatBuffer shares = divided.softmax(-1).toByteBuffer(true).asFloatBuffer();
    long[] next = new long[randoms.size()];
    for (int i = 0; i < next.length; i++) {
      next[i] = sampler.draw(shares, randoms.get(i));
    }
    return next;
  }

  private NDArray penalised(NDArray scores) {
    long vocabulary = scores.getShape().get(1);
    long[] places = new long[seen.stream().mapToInt(Set::size).sum()];
    if (places.length == 0) {
      return scores;
    }
    int count = 0;
    for (int text = 0; text < seen.size(); text++) {
      for (long token : seen.get(text)) {
        places[count++] = text * vocabulary + token;
      }
    }
    NDArray at = scores.getManager().create(places);
    NDArray all = scores.toType(DataType.FLOAT32, false);
    float[] values = all.take(at).toFloatArray();
    for (int i = 0; i < values.length; i++) {
      values[i] *= (float) (values[i] < 0 ? how.penalty() : 1 / how.penalty());
    }
    return all.put(at, scores.getManager().create(values));
  }
}
