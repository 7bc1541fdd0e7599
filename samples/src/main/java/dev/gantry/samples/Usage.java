// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import dev.gantry.core.MisuseException;
import java.util.stream.Stream;

/// Checks that a program was started with its arguments.
public final class Usage {
  private Usage() {}

  /// @param usage the program and its arguments; "…" says that the last argument may be repeated
  /// @throws MisuseException that shows the usage, if fewer arguments are given
  public static void check(String usage, String... arguments) {
    long least = Stream.of(usage.split(" ")).skip(1).filter(word -> !word.equals("…")).count();
    if (arguments.length < least) {
      throw new MisuseException("usage: " + usage);
    }
  }
}
