// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// A command that computes a report in a session of its own, and prints it for people or as JSON.
abstract class ReportCommand implements Callable<Integer> {
  @Spec CommandSpec spec;

  @Option(names = "--json", description = "Print JSON.")
  boolean json;

  /// @throws dev.gantry.core.MisuseException if the options do not fit each other or the input
  abstract Report report(GantrySession session) throws IOException;

  @Override
  public Integer call() throws IOException {
    checkOptions();
    try (GantrySession session = GantrySession.open();
        Report report = report(session)) {
      PrintWriter out = spec.commandLine().getOut();
      if (json) {
        Json.print(out, report.json());
      } else {
        report.print(out);
        out.flush();
      }
      return report.exitCode(spec.commandLine().getErr());
    }
  }

  /// Checks the options that need no session, before a session is opened.
  void checkOptions() {}
}
