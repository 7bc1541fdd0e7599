// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.schedules;

import java.util.List;

/// A few threads over objects that they share. A class without arguments to its constructor: each schedule has a new one.
public interface Scenario {
  /// A thread's work.
  @FunctionalInterface
  interface Work {
    void run() throws Exception;
  }

  /// The work of each thread.
  List<Work> threads();

  /// Whether the threads wait for others than one another, such as threads that write files: a step then lasts until such
  /// a wait is over. They must not wait for one another.
  default boolean waitsForOthers() {
    return false;
  }

  /// Looks at what the threads have left, when all have ended.
  ///
  /// @throws AssertionError if it is wrong
  void check() throws Exception;
}
