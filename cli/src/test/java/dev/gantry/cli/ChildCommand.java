// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;

/// Runs a command line in a JVM of its own, so that a test can end it by a signal, or let it
/// write to a device.
final class ChildCommand {
  private ChildCommand() {}

  static ProcessBuilder of(Stream<String> arguments) {
    return ChildJvm.command(
        List.of("-Dai.djl.offline=true"), GantryCommand.class, arguments.toArray());
  }

  static Process start(Stream<String> arguments) throws IOException {
    return of(arguments).start();
  }
}
