// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Properties;

/// The result of one command line, which was run in this JVM.
public record CommandLineRun(int exitCode, String out, String err) {
  public static CommandLineRun of(Object... arguments) {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    Properties before = (Properties) System.getProperties().clone();
    try {
      int exitCode =
          GantryCommand.run(
              new PrintWriter(out),
              new PrintWriter(err),
              List.of(arguments).stream().map(Object::toString).toArray(String[]::new));
      return new CommandLineRun(exitCode, out.toString(), err.toString());
    } finally {
      // Some options set system properties, which would stay set in this JVM.
      System.setProperties(before);
    }
  }

  /// Parses standard output as JSON.
  public Object json() {
    return JsonTree.parse(out);
  }
}
