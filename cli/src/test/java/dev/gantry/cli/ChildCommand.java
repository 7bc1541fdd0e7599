// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// A command line in a JVM of its own, so that it can be ended by a signal, or write to a device.
final class ChildCommand {
  private ChildCommand() {}

  static ProcessBuilder of(Stream<String> arguments) {
    List<String> command =
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-XX:TieredStopAtLevel=1",
            "-Dai.djl.offline=true",
            "-cp",
            System.getProperty("java.class.path"),
            GantryCommand.class.getName());
    return new ProcessBuilder(Stream.concat(command.stream(), arguments).toList());
  }

  static Process start(Stream<String> arguments) throws IOException {
    return of(arguments).start();
  }
}
