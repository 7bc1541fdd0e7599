// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.names;

import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.SequencedSet;
import java.util.Set;
import java.util.stream.Collectors;

/// Compares the saved names with the existing ones, lists names in messages, and finds names that
/// are similar to an unknown one.
public final class Names {
  /// How many names a message lists; a longer list would be hard to read.
  private static final int IN_MESSAGE = 4;

  private static final int SHOWN = 3;

  private Names() {}

  /// @param mismatch the beginning of the message
  /// @param taker the object that has the names `fitting`, for the message
  /// @throws MisuseException if a name is in one of the sets only; the message lists these names
  public static void requireSame(
      String mismatch, String taker, Set<String> saved, SequencedSet<String> fitting) {
    List<String> missing = fitting.stream().filter(name -> !saved.contains(name)).toList();
    List<String> unknown = saved.stream().filter(name -> !fitting.contains(name)).toList();
    List<String> parts = new ArrayList<>();
    if (!missing.isEmpty()) {
      parts.add(listed(missing) + (missing.size() == 1 ? " is" : " are") + " not saved");
    }
    if (!unknown.isEmpty()) {
      parts.add(taker + " has no " + listed(unknown));
    }
    if (!parts.isEmpty()) {
      throw new MisuseException(mismatch + ": " + String.join("; ", parts));
    }
  }

  /// Lists the first few names in quotes, and says how many more there are.
  public static String listed(Collection<String> names) {
    String first =
        names.stream()
            .limit(IN_MESSAGE)
            .map(name -> "'" + name + "'")
            .collect(Collectors.joining(", "));
    int others = names.size() - IN_MESSAGE;
    return others > 0 ? first + " and " + others + " more" : first;
  }

  /// Says which known names are similar to an unknown one, as in "there is no tensor 'a.wieght'
  /// among 12; similar names are 'a.weight'". If none is similar, this names some others.
  public static String unknown(String name, Collection<String> known) {
    if (known.size() < 2) {
      return "there is no tensor '%s'; %s"
          .formatted(name, known.isEmpty() ? "there are none" : "the only one is " + listed(known));
    }
    List<String> nearest =
        nearest(name, known).stream()
            .filter(candidate -> 2 * candidate.common() >= name.length())
            .limit(SHOWN)
            .map(Candidate::name)
            .toList();
    String names =
        nearest.isEmpty()
            ? "their names are " + listed(known)
            : "similar names are " + listed(nearest);
    return "there is no tensor '%s' among %d; %s".formatted(name, known.size(), names);
  }

  /// Sorts all known names by their similarity to `name`, the most similar first.
  public static List<String> first(String name, Collection<String> known) {
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

  /// Counts the characters that two names share at their beginnings and at their ends. This takes
  /// linear time and finds a typing error at one position. The edit distance to half a million
  /// names would take too long.
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
