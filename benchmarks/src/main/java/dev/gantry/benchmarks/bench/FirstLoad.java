// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.ChildJvm;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// The first load of a fresh JVM, which links native calls, runs cold code and, on a GPU, makes its
/// context and pins buffers. [#run] counts the load alone.
public final class FirstLoad implements Contender {
  private final Path file;
  private final Device device;
  private final List<Double> processSeconds = new ArrayList<>();

  FirstLoad(Path file, Device device) {
    this.file = file;
    this.device = device;
  }

  @Override
  public String name() {
    return "Gantry, from opening the session";
  }

  @Override
  public double run() throws IOException, InterruptedException {
    long start = System.nanoTime();
    Process child =
        new ProcessBuilder(
                ChildJvm.command(FirstLoad.class, List.of(file.toString(), device.toString())))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    try (BufferedReader out = child.inputReader()) {
      String line = out.readLine();
      double whole = (System.nanoTime() - start) / 1e9;
      if (line == null) {
        throw new IOException("the child JVM ended with code " + child.waitFor());
      }
      processSeconds.add(whole);
      return Double.parseDouble(line);
    } finally {
      child.destroyForcibly();
      var _ = child.waitFor();
    }
  }

  /// From the process's start to the load's end, of each run.
  List<Double> processSeconds() {
    return processSeconds;
  }

  static void main(String[] arguments) {
    ChildJvm.endWithParent();
    long start = System.nanoTime();
    try (GantrySession session = GantrySession.open();
        Loaded _ =
            session.load(
                GantryLoad.wanted(Path.of(arguments[0])),
                Device.parse(arguments[1]),
                TransferOptions.defaults())) {
      System.out.println((System.nanoTime() - start) / 1e9);
    }
  }
}
