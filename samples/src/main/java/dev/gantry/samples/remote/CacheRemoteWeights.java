// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.remote;

import ai.djl.ndarray.NDManager;
import dev.gantry.core.Session;
import dev.gantry.core.TransferReport.FileReport;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.samples.Usage;
import java.nio.file.Path;

/// Loads remote weights twice: from the server, then from a folder on this machine's disk.
///
/// `URL` is that of a safetensors file or an index.json; `FOLDER` holds the cache:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' CacheRemoteWeights.java URL FOLDER
/// ```
public final class CacheRemoteWeights {
  private CacheRemoteWeights() {}

  public static void main(String[] arguments) {
    Usage.check("CacheRemoteWeights.java URL FOLDER", arguments);
    try (Session session = Session.open()) {
      session.cacheRemoteFiles(Path.of(arguments[1]), 500_000_000_000L);
      load(arguments[0], session);
      load(arguments[0], session);
    }
  }

  private static void load(String url, Session session) {
    LoadOptions options =
        LoadOptions.builder()
            .optReport(report ->
                System.out.printf(
                    "%d of %d files from the cache%n",
                    report.files().stream().filter(FileReport::cached).count(),
                    report.files().size()))
            .build();
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(url, session)) {
      System.out.println(weights.load(manager, options).size() + " arrays");
    }
  }
}
