// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import java.io.PrintWriter;

/// What a command has found out, and prints once nothing can go wrong any more.
public interface Report extends Json.Document, AutoCloseable {
  /// For people.
  void print(PrintWriter out);

  @Override
  default void close() {}
}
