package dev.gantry.djl;

import ai.djl.engine.Engine;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.RandomSource;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalInt;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A return of the generators of random numbers to where they stood. What is wrong with the saved
/// state comes out before anything changes.
///
/// @param seed with which DJL's engine was seeded
/// @param states of those generators that were saved, and can be restored here
record RandomRestore(Engine engine, OptionalInt seed, Map<RandomSource, String> states) {
  private static final Logger LOG = LoggerFactory.getLogger(RandomRestore.class);

  /// @throws MisuseException if what was saved is no state of a generator
  static RandomRestore of(SavedState saved, Trainer trainer) {
    Map<RandomSource, String> states = new LinkedHashMap<>();
    for (RandomSource source : RandomSource.of(trainer)) {
      saved
          .generator(source.name())
          .ifPresent(base64 -> {
            switch (source.state()) {
              case RandomSource.State.Known _ -> {
                source.check(base64);
                states.put(source, base64);
              }
              case RandomSource.State.Absent(String reason) ->
                  LOG.warn("random numbers of {} are not restored: {}", source.name(), reason);
            }
          });
    }
    return new RandomRestore(trainer.getManager().getEngine(), saved.seed(), states);
  }

  /// The seed first: to set it resets the generators.
  void apply() {
    seed.ifPresent(engine::setRandomSeed);
    states.forEach(RandomSource::restore);
  }
}
