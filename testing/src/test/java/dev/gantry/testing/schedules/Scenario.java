// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.schedules;

import java.util.List;

/// A few threads that share objects. A scenario has a constructor without arguments; each schedule
/// makes a new instance.
public interface Scenario {
  /// The work of a thread.
  @FunctionalInterface
  interface Work {
    void run() throws Exception;
  }

  /// Returns the work of each thread.
  List<Work> threads();

  /// Whether the scenario's threads wait for threads outside the scenario, such as threads that
  /// write files. A step then lasts until such a wait has ended. The scenario's threads must not
  /// wait for one another then.
  default boolean waitsForOthers() {
    return false;
  }

  /// Checks the shared objects after all threads have ended.
  ///
  /// @throws AssertionError if their state is wrong
  void check() throws Exception;
}
