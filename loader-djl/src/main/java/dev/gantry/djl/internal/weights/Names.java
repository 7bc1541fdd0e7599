// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.core.MisuseException;
import java.util.Collection;
import java.util.List;
import java.util.SequencedSet;
import java.util.Set;
import java.util.stream.Collectors;

/// Compares the names that were saved with those that exist, and lists names in messages.
public final class Names {
  /// A longer message would be hard to read.
  private static final int IN_MESSAGE = 4;

  private Names() {}

  /// @param mismatch how the message begins
  /// @param taker what has the names of `fitting`, for the message
  /// @throws MisuseException that names what is in one of the sets only, if there is anything
  public static void requireSame(
      String mismatch, String taker, Set<String> saved, SequencedSet<String> fitting) {
    List<String> missing = fitting.stream().filter(name -> !saved.contains(name)).toList();
    List<String> unknown = saved.stream().filter(name -> !fitting.contains(name)).toList();
    if (missing.isEmpty() && unknown.isEmpty()) {
      return;
    }
    StringBuilder message = new StringBuilder(mismatch).append(": ");
    if (!missing.isEmpty()) {
      message.append("not saved is ").append(listed(missing));
    }
    if (!missing.isEmpty() && !unknown.isEmpty()) {
      message.append("; ");
    }
    if (!unknown.isEmpty()) {
      message.append(taker).append(" has no ").append(listed(unknown));
    }
    throw new MisuseException(message.toString());
  }

  /// The first few, quoted, and how many more there are.
  public static String listed(Collection<String> names) {
    String first =
        names.stream()
            .limit(IN_MESSAGE)
            .map(name -> "'" + name + "'")
            .collect(Collectors.joining(", "));
    int others = names.size() - IN_MESSAGE;
    return others > 0 ? first + " and " + others + " more" : first;
  }
}
