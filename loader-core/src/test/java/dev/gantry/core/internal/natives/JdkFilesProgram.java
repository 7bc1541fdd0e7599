// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;

/// Writes a file, loads it and maps it.
final class JdkFilesProgram {
  private JdkFilesProgram() {}

  public static void main(String[] arguments) {
    Path file = Path.of(arguments[0], "weights");
    byte[] bytes = new byte[100_000];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (i * 31);
    }
    try (GantrySession session = GantrySession.open()) {
      NewFile made = new NewFile(file, List.of(new Memory.OnHost(MemorySegment.ofArray(bytes))));
      session.write(List.of(made), WriteOptions.defaults());
      List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(file, 1001, 50_000), 8));
      try (Loaded loaded = session.load(wanted, Device.HOST, TransferOptions.defaults());
          Loaded mapped = session.map(wanted)) {
        for (Loaded each : List.of(loaded, mapped)) {
          byte[] found = new byte[50_000];
          each.regions().getFirst().copyTo(MemorySegment.ofArray(found));
          for (int i = 0; i < found.length; i++) {
            if (found[i] != bytes[1001 + i]) {
              throw new AssertionError("byte " + i);
            }
          }
        }
        System.out.println(loaded.report().files());
      }
    }
  }
}
