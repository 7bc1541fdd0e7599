// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/// Loads all files of a folder and writes each of them again under another name beside it; then
/// loads a file whose name is given as text, and a file that does not exist.
final class FileNamesProgram {
  static final long SEED = 5;
  static final int LENGTH = 10_000;

  private FileNamesProgram() {}

  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    List<Path> files;
    try (Stream<Path> listed = Files.list(folder)) {
      files = listed.toList();
    }
    try (GantrySession session = GantrySession.open()) {
      for (Path file : files) {
        byte[] bytes = load(session, Location.of(file));
        Path target = Path.of(URI.create(file.toUri() + ".new"));
        NewFile made =
            new NewFile(target, List.of(new Memory.OnHost(MemorySegment.ofArray(bytes))));
        session.write(List.of(made), WriteOptions.defaults());
      }
      byte[] _ = load(session, Location.of(folder + "/w\u00e4"));
      byte[] _ = load(session, Location.of(folder + "/plain").sibling("w\u00e4"));
      try {
        byte[] _ = load(session, Location.of(folder.resolve("w?")));
      } catch (TransferException e) {
        System.out.println(e.getMessage());
      }
    }
  }

  private static byte[] load(GantrySession session, Location file) {
    List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1));
    try (Loaded loaded = session.load(all, Device.HOST, TransferOptions.defaults())) {
      byte[] bytes = TestFiles.bytes(loaded.regions().getFirst());
      if (!Arrays.equals(bytes, TestFiles.bytes(SEED, LENGTH))) {
        throw new AssertionError(file.toString());
      }
      return bytes;
    }
  }
}
