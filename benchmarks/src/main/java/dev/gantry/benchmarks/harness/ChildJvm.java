// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// JVMs that run a class of this one's class path, and end with it.
public final class ChildJvm {
  private ChildJvm() {}

  /// The command that starts a JVM with this one's class path and options.
  public static List<String> command(Class<?> main, List<String> arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        // A debugger's port, for one, is taken.
        .filter(option -> !option.startsWith("-agentlib") && !option.startsWith("-javaagent"))
        .forEach(command::add);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(arguments);
    return command;
  }

  /// For the child: ends it when its parent ends, which holds the other end of standard input as long
  /// as it lives.
  public static void endWithParent() {
    Thread.ofPlatform()
        .daemon()
        .start(() -> {
          try {
            var _ = System.in.read();
          } catch (IOException _) {
            // The parent has ended, too.
          }
          Runtime.getRuntime().halt(1);
        });
  }
}
