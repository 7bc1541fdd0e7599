// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.engine.Engine;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SequencedMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Saved states of the random number generators that a training draws from, checked and ready to be
/// restored.
///
/// @param seed the seed that DJL's engine was given
/// @param states the states of the generators that were saved and can be restored here
public record RandomStates(Engine engine, OptionalInt seed, Map<RandomSource, String> states) {
  private static final Logger LOG = LoggerFactory.getLogger(RandomStates.class);

  /// The states now, as entries of [SavedState].
  static SequencedMap<String, String> save(Trainer trainer) {
    SequencedMap<String, String> entries = new LinkedHashMap<>();
    Integer seed = trainer.getManager().getEngine().getSeed();
    if (seed != null) {
      entries.put(SavedState.SEED, seed.toString());
    }
    for (RandomSource source : RandomSource.of(trainer)) {
      if (isThere(source)) {
        entries.put(SavedState.RANDOM + source.name(), source.state());
      }
    }
    return entries;
  }

  /// Checks saved states and changes nothing.
  ///
  /// @throws MisuseException if a saved text is not a state of its generator
  public static RandomStates of(SavedState saved, Trainer trainer) {
    Map<RandomSource, String> states = new LinkedHashMap<>();
    for (RandomSource source : RandomSource.of(trainer)) {
      saved
          .generator(source.name())
          .filter(_ -> isThere(source))
          .ifPresent(base64 -> {
            var _ = source.decoded(base64);
            states.put(source, base64);
          });
    }
    return new RandomStates(trainer.getManager().getEngine(), saved.seed(), states);
  }

  private static boolean isThere(RandomSource source) {
    Optional<String> absence = source.absence();
    absence.ifPresent(reason ->
        LOG.warn("random numbers of {} are neither saved nor restored: {}", source.name(), reason));
    return absence.isEmpty();
  }

  /// Restores the seed and the states. The engine's seed is set first, because that resets the
  /// generators.
  public void restore() {
    seed.ifPresent(engine::setRandomSeed);
    states.forEach(RandomSource::restore);
  }
}
