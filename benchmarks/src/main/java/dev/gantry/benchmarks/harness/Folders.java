// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/// Folders that benchmarks make.
public final class Folders {
  private Folders() {}

  /// Removes a folder with all that is in it.
  public static void remove(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }
}
