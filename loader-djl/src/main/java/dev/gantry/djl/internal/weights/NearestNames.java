// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;

/// Finds what you may have meant by a name that is not there.
public final class NearestNames {
  private static final int SHOWN = 3;

  private NearestNames() {}

  /// As in "no tensor 'a.wieght' among 12 tensors; near to it: 'a.weight'".
  public static String unknown(String name, Collection<String> known) {
    List<String> nearest =
        nearest(name, known).stream()
            .filter(candidate -> 2 * candidate.common() >= name.length())
            .limit(SHOWN)
            .map(candidate -> "'" + candidate.name() + "'")
            .toList();
    String problem = "no tensor '" + name + "' among " + known.size() + " tensors";
    return nearest.isEmpty()
        ? problem
        : problem + "; near to it: " + nearest.stream().collect(Collectors.joining(", "));
  }

  /// All of these, the nearest first.
  static List<String> first(String name, Collection<String> known) {
    return nearest(name, known).stream().map(Candidate::name).toList();
  }

  private static List<Candidate> nearest(String name, Collection<String> known) {
    return known.stream()
        .map(candidate -> new Candidate(candidate, common(name, candidate)))
        .sorted(
            Comparator.comparingInt(Candidate::common)
                .reversed()
                .thenComparingInt(candidate -> candidate.name().length()))
        .toList();
  }

  private record Candidate(String name, int common) {}

  /// Characters that two names share at their beginning and at their end: linear, where an edit
  /// distance to each of half a million names would not be, and right for a slip in one place.
  private static int common(String one, String other) {
    int shorter = Math.min(one.length(), other.length());
    int first = 0;
    while (first < shorter && one.charAt(first) == other.charAt(first)) {
      first++;
    }
    int last = 0;
    while (last < shorter - first
        && one.charAt(one.length() - 1 - last) == other.charAt(other.length() - 1 - last)) {
      last++;
    }
    return first + last;
  }
}
