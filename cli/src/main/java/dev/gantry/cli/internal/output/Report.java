// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import java.io.PrintWriter;

/// The results of a command, which are printed once nothing can go wrong any more.
public interface Report extends Json.Document, AutoCloseable {
  /// Prints the report for people.
  void print(PrintWriter out);

  /// The command's exit code, after what it has to say on standard error.
  default int exitCode(PrintWriter err) {
    return 0;
  }

  @Override
  default void close() {}
}
