// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

final class Counts {
  final String target;
  long executions;

  /// The number of inputs that the parser accepted.
  long taken;

  long nanos;
  long slowestNanos;

  Counts(String target) {
    this.target = target;
  }

  String line() {
    return target + " " + executions + " " + taken + " " + nanos + " " + slowestNanos;
  }

  /// Reads a line that [#line] wrote.
  static Counts of(String line) {
    String[] words = line.split(" ", -1);
    Counts counts = new Counts(words[0]);
    counts.executions = Long.parseLong(words[1]);
    counts.taken = Long.parseLong(words[2]);
    counts.nanos = Long.parseLong(words[3]);
    counts.slowestNanos = Long.parseLong(words[4]);
    return counts;
  }
}
