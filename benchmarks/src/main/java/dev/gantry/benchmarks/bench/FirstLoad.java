// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.ChildJvm;
import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import java.nio.file.Path;

/// Measures the first load of a fresh JVM, which links native calls, runs cold code and, on a GPU, makes
/// its context and pins buffers. It prints the seconds of the load alone.
final class FirstLoad {
  private FirstLoad() {}

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
