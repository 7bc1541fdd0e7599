// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.text;

import java.nio.file.Path;

/// A parser of files of JSON lines.
public final class JsonTexts {
  private JsonTexts() {}

  public static void read(Path file) throws Exception {
    try (JsonLines lines = new JsonLines(file, "text")) {
      while (lines.next() != null) {
        // The loop only reads each text.
      }
    }
  }
}
