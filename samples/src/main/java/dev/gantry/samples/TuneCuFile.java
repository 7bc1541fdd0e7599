// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.ndarray.NDManager;
import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Metrics;
import dev.gantry.core.Session;
import dev.gantry.djl.Weights;
import java.nio.file.Path;
import java.util.Map;

/// Loads weights in a session with settings of its own for libcufile, and prints what the session
/// counted.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TuneCuFile.java FILE
/// ```
public final class TuneCuFile {
  private TuneCuFile() {}

  public static void main(String[] arguments) {
    Usage.check("TuneCuFile.java FILE", arguments);
    CuFileConfig config =
        CuFileConfig.of(Map.of("execution.max_io_threads", 4, "execution.parallel_io", true));
    try (NDManager manager = NDManager.newBaseManager();
        Session session = Session.open(config);
        Weights weights = Weights.open(Path.of(arguments[0]), session)) {
      int arrays = weights.load(manager).size();
      Metrics metrics = session.metrics();
      System.out.printf(
          "%d arrays in %d requests, bytes by transport: %s%n",
          arrays, metrics.reads().requests(), metrics.reads().bytesByTransport());
    }
  }
}
