// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import java.io.PrintWriter;

/// The results of a command, which are printed once nothing can go wrong any more.
public interface Report extends Json.Document, AutoCloseable {
  /// Prints the report for people.
  void print(PrintWriter out);

  @Override
  default void close() {}
}
