// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/// A process that loads a remote file through a cache, and ends with 0 if its bytes are right.
final class CacheProgram {
  private CacheProgram() {}

  /// @param arguments the cache's folder, the URL, the seed of the bytes, and their number
  static void main(String[] arguments) {
    byte[] expected = TestFiles.bytes(Long.parseLong(arguments[2]), Integer.parseInt(arguments[3]));
    try (GantrySession session = GantrySession.open()) {
      session.cacheRemoteFiles(Path.of(arguments[0]), 1L << 30);
      Extent all = new Extent(Location.of(arguments[1]), 0, expected.length);
      try (Loaded loaded =
          session.load(
              List.of(new ExtentRequest(all, 1)), Device.HOST, TransferOptions.defaults())) {
        byte[] bytes = TestFiles.bytes(loaded.regions().getFirst());
        if (!Arrays.equals(bytes, expected)) {
          System.err.println("byte " + Arrays.mismatch(bytes, expected) + " differs");
          System.exit(1);
        }
      }
    }
  }

  /// Starts the program in a JVM of its own.
  static Process start(Path folder, Location file, long seed, int length) throws IOException {
    return ChildJvm.command(List.of("-Xmx256m"), CacheProgram.class, folder, file, seed, length)
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }
}
