// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.order.SampleWeights;
import dev.gantry.formats.spi.SampleCatalogue;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.ToDoubleFunction;

/// Says how often each sample is drawn, by the value of a small field.
public sealed interface Weighting {
  long seed();

  String field();

  /// Draws each value of the field equally often, whatever the number of samples that have it.
  record Balanced(long seed, String field) implements Weighting {}

  /// Draws samples as often as a function says.
  record ByValue(long seed, String field, ToDoubleFunction<Number> weight) implements Weighting {}

  /// Reads the field of all samples.
  ///
  /// @throws MisuseException if there are too many samples, the field is no number, or its values give no
  ///     weights
  default SampleWeights of(GantrySession session, SampleCatalogue store) {
    long samples = SelectedSamples.count(store);
    MisuseException.requireRange("samples with weights", samples, 1, SampleWeights.MAX_SAMPLES);
    double[] weights = new double[(int) samples];
    switch (this) {
      case Balanced _ -> {
        Map<Double, Integer> counts = new HashMap<>();
        FieldNumbers.read(
            session,
            store,
            field(),
            (sample, value) -> {
              weights[(int) sample] = value.doubleValue();
              int _ = counts.merge(value.doubleValue(), 1, Integer::sum);
              FieldNumbers.requireClasses(field(), counts.size());
            });
        for (int i = 0; i < weights.length; i++) {
          weights[i] = 1.0 / Objects.requireNonNull(counts.get(weights[i]));
        }
      }
      case ByValue(_, _, ToDoubleFunction<Number> weight) ->
          FieldNumbers.read(
              session,
              store,
              field(),
              (sample, value) -> weights[(int) sample] = weight.applyAsDouble(value));
    }
    return SampleWeights.of(seed(), weights);
  }
}
