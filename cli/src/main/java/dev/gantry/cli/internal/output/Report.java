// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import java.io.PrintWriter;

/// What a command has found out, and prints once nothing can go wrong any more.
public interface Report extends AutoCloseable {
  /// For people.
  void print(PrintWriter out);

  /// The document for `--json`, as [Json] takes it.
  Object json();

  @Override
  default void close() {}
}
