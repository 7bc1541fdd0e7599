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

/// Compares the names that were saved with those that exist, lists names in messages, and finds what you
/// may have meant by a name that is not there.
public final class Names {
  /// How many names a message lists: with more it would be hard to read.
  private static final int IN_MESSAGE = 4;

  private static final int SHOWN = 3;

  private Names() {}

  /// @param mismatch how the message begins
  /// @param taker what has the names of `fitting`, for the message
  /// @throws MisuseException that names what is in one of the sets only, if there is anything
  public static void requireSame(
      String mismatch, String taker, Set<String> saved, SequencedSet<String> fitting) {
    List<String> missing = fitting.stream().filter(name -> !saved.contains(name)).toList();
    List<String> unknown = saved.stream().filter(name -> !fitting.contains(name)).toList();
    List<String> parts = new ArrayList<>();
    if (!missing.isEmpty()) {
      parts.add("not saved is " + listed(missing));
    }
    if (!unknown.isEmpty()) {
      parts.add(taker + " has no " + listed(unknown));
    }
    if (!parts.isEmpty()) {
      throw new MisuseException(mismatch + ": " + String.join("; ", parts));
    }
  }

  /// Lists the first few names, quoted, and how many more there are.
  public static String listed(Collection<String> names) {
    String first =
        names.stream()
            .limit(IN_MESSAGE)
            .map(name -> "'" + name + "'")
            .collect(Collectors.joining(", "));
    int others = names.size() - IN_MESSAGE;
    return others > 0 ? first + " and " + others + " more" : first;
  }

  /// Says what is near to an unknown name, as in "no tensor 'a.wieght' among 12 tensors; near to it:
  /// 'a.weight'".
  public static String unknown(String name, Collection<String> known) {
    String nearest =
        nearest(name, known).stream()
            .filter(candidate -> 2 * candidate.common() >= name.length())
            .limit(SHOWN)
            .map(candidate -> "'" + candidate.name() + "'")
            .collect(Collectors.joining(", "));
    return "no tensor '%s' among %s tensors%s%s"
        .formatted(name, known.size(), nearest.isEmpty() ? "" : "; near to it: ", nearest);
  }

  /// Sorts all known names, the nearest to `name` first.
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

  /// How many characters two names share at their beginning and at their end. This takes linear time, where
  /// the edit distance to half a million names would take too long, and it finds a slip in one place.
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
