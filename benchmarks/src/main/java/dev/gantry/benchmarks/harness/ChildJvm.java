// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// A program in a fresh JVM with this JVM's class path and options. It prints the seconds that it
/// measured, the counted ones first. It ends with this JVM.
public final class ChildJvm implements Contender {
  private final String name;
  private final List<String> command = new ArrayList<>();
  private final List<double[]> figures = new ArrayList<>();

  /// @param main calls [#endWithParent] first
  public ChildJvm(String name, Class<?> main, String... arguments) {
    this.name = name;
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        // A debugger's port is already in use by this JVM.
        .filter(option -> !option.startsWith("-agentlib") && !option.startsWith("-javaagent"))
        .forEach(command::add);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public double run() throws IOException, InterruptedException {
    long start = System.nanoTime();
    Process child =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    try (BufferedReader out = child.inputReader()) {
      String line = out.readLine();
      double whole = (System.nanoTime() - start) / 1e9;
      if (line == null) {
        throw new IOException(name + ": the child JVM ended with code " + child.waitFor());
      }
      figures.add(
          Arrays.stream((line + " " + whole).split(" ", -1))
              .mapToDouble(Double::parseDouble)
              .toArray());
      return figures.getLast()[0];
    } finally {
      child.destroyForcibly();
      var _ = child.waitFor();
    }
  }

  /// Returns the numbers that the program printed in each run, followed by the seconds from the
  /// start of the process to this output.
  public List<double[]> figures() {
    return figures;
  }

  /// Called in the child: ends it when its parent ends.
  public static void endWithParent() {
    var _ =
        ProcessHandle.current()
            .parent()
            .orElseThrow()
            .onExit()
            .thenRun(() -> Runtime.getRuntime().halt(1));
  }
}
