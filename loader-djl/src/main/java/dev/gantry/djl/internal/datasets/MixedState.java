// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.order.MixedOrder;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The position of a mixture.
///
/// @param order describes the datasets, weights, seed, end rule and batches as text
/// @param epoch counts from 0
/// @param given how many batches of the epoch came from each dataset
/// @param lengths how many batches of the epoch each dataset has, or [MixedOrder#UNKNOWN]
/// @param parts the state of each dataset, as text
public record MixedState(
    String order, long epoch, List<Long> given, List<Long> lengths, List<String> parts) {
  private static final Pattern TEXT =
      Pattern.compile(
          "gantry-mix/1 order=(\\S+) epoch=(\\d{1,18}) given=([\\d,]+) lengths=([\\d,]+)"
              + " parts=(\\S+)");

  public MixedState {
    given = List.copyOf(given);
    lengths = List.copyOf(lengths);
    parts = List.copyOf(parts);
  }

  /// The beginning of an epoch.
  public static MixedState start(String order, long epoch, List<Long> lengths, List<String> parts) {
    return new MixedState(order, epoch, Collections.nCopies(lengths.size(), 0L), lengths, parts);
  }

  public String toText() {
    return "gantry-mix/1 order=%s epoch=%d given=%s lengths=%s parts=%s"
        .formatted(
            order,
            epoch,
            join(given),
            join(lengths),
            parts.stream()
                .map(part -> URLEncoder.encode(part, StandardCharsets.UTF_8))
                .collect(Collectors.joining(",")));
  }

  /// @throws MisuseException if [#toText] did not write the text
  public static MixedState parse(String text) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw none(text);
    }
    try {
      MixedState state =
          new MixedState(
              matcher.group(1),
              Long.parseLong(matcher.group(2)),
              numbers(matcher.group(3)),
              numbers(matcher.group(4)),
              Stream.of(matcher.group(5).split(",", -1))
                  .map(part -> URLDecoder.decode(part, StandardCharsets.UTF_8))
                  .toList());
      int size = state.parts.size();
      if (state.given.size() != size || state.lengths.size() != size) {
        throw none(text);
      }
      return state;
    } catch (IllegalArgumentException _) {
      throw none(text);
    }
  }

  /// @param known how many batches of an epoch each dataset has, or [MixedOrder#UNKNOWN]
  /// @throws MisuseException if this state has another number of batches for a dataset, or more
  ///     batches were taken from the dataset than it has
  public void requireLengths(List<Long> known) {
    for (int i = 0; i < parts.size(); i++) {
      boolean differs = known.get(i) != MixedOrder.UNKNOWN && !known.get(i).equals(lengths.get(i));
      if (differs || given.get(i) > lengths.get(i)) {
        throw new MisuseException(
            "the state is of another mixture: dataset %s has given %s of %s batches (now of %s)"
                .formatted(i, given.get(i), length(lengths.get(i)), length(known.get(i))));
      }
    }
  }

  public static String length(long batches) {
    return batches == MixedOrder.UNKNOWN ? "unknown" : Long.toString(batches);
  }

  private static MisuseException none(String text) {
    return new MisuseException("this is not the state of a mixture of datasets: '" + text + "'");
  }

  private static String join(List<Long> numbers) {
    return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
  }

  private static List<Long> numbers(String text) {
    return Stream.of(text.split(",", -1)).map(Long::valueOf).toList();
  }
}
