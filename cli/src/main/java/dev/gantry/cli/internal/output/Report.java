// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.PrintWriter;

/// What a command has found out, and prints once nothing can go wrong any more.
public interface Report extends AutoCloseable {
  /// For people.
  void print(PrintWriter out);

  /// As one JSON value.
  void write(JsonGenerator json) throws IOException;

  default void printJson(PrintWriter out) {
    Json.print(out, this::write);
  }

  default void show(PrintWriter out, boolean asJson) {
    if (asJson) {
      printJson(out);
    } else {
      print(out);
      out.flush();
    }
  }

  @Override
  default void close() {}
}
