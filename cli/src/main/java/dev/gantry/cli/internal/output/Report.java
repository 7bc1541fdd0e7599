// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import java.io.PrintWriter;

/// The results of a command. They are printed only after all work has succeeded, so that a
/// command that fails prints no results.
public interface Report extends Json.Document, AutoCloseable {
  /// Prints the report for people.
  void print(PrintWriter out);

  /// Prints the errors that the report holds, and returns the command's exit code.
  default int exitCode(PrintWriter err) {
    return 0;
  }

  @Override
  default void close() {}
}
