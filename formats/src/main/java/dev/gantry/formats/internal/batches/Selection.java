// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.order.SampleBits;
import dev.gantry.formats.spi.SampleCatalogue;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/// Says which samples of a dataset are kept.
public sealed interface Selection {
  /// Keeps consecutive samples.
  ///
  /// @param to the number just past the last one
  record Range(long from, long to) implements Selection {
    public Range {
      if (from < 0 || to <= from) {
        throw new MisuseException("samples from " + from + " to " + to + " are none");
      }
    }
  }

  /// Keeps the samples of these numbers, in the order of the files, each once.
  record Numbers(Supplier<LongStream> numbers) implements Selection {}

  /// Keeps one of several parts, which are drawn at random.
  ///
  /// @param part the part's number, from 0
  /// @param ratio the sizes of all parts in relation to each other
  record Part(long seed, int part, List<Integer> ratio) implements Selection {
    public Part {
      ratio = List.copyOf(ratio);
      MisuseException.requireRange("part of " + ratio, part, 0, ratio.size() - 1);
      for (int size : ratio) {
        MisuseException.requireRange("number of a ratio", size, 1, Integer.MAX_VALUE);
      }
    }
  }

  /// Keeps the samples whose field has one of some values.
  record Where(String field, Predicate<Number> keep) implements Selection {}

  /// Returns the samples that are kept.
  ///
  /// @param store owned by the result
  /// @throws MisuseException if none are kept, a sample is not there, or a field is no number
  default SelectedSamples of(GantrySession session, SampleCatalogue store) {
    long samples = SelectedSamples.count(store);
    SampleBits kept =
        switch (this) {
          case Range(long from, long to) ->
              SampleBits.of(samples, all -> LongStream.range(from, to).forEach(all));
          case Numbers(Supplier<LongStream> numbers) ->
              SampleBits.of(samples, all -> numbers.get().forEach(all));
          case Part(long seed, int part, List<Integer> ratio) ->
              SampleBits.part(samples, seed, part, ratio);
          case Where(String field, Predicate<Number> keep) ->
              SampleBits.of(
                  samples,
                  all ->
                      FieldNumbers.read(
                          session,
                          store,
                          field,
                          (sample, value) -> {
                            if (keep.test(value)) {
                              all.accept(sample);
                            }
                          }));
        };
    if (kept.count() == 0 && this instanceof Where) {
      throw new MisuseException(
          "none of "
              + samples
              + " samples is kept; values of integers and booleans are Long, all others Double");
    }
    if (kept.count() == 0) {
      throw new MisuseException("none of " + samples + " samples is kept");
    }
    return SelectedSamples.of(store, kept);
  }
}
