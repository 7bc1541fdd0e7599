// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/// The standard error, to which the tests' logger writes.
final class StandardError {
  private StandardError() {}

  /// Returns the text that is logged while `work` runs.
  static String during(Runnable work) {
    PrintStream before = System.err;
    ByteArrayOutputStream log = new ByteArrayOutputStream();
    System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
    try {
      work.run();
    } finally {
      System.setErr(before);
    }
    return log.toString(StandardCharsets.UTF_8);
  }
}
