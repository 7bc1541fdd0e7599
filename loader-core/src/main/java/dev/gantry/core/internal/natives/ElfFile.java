// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;

/// Checks the header of a shared library before the library is loaded. The dynamic loader reports
/// a library for another processor as missing, and for a file that is not a library the JVM prints
/// a warning about stack guards.
final class ElfFile {
  private static final boolean LINUX = System.getProperty("os.name", "").startsWith("Linux");
  private static final String PROCESSOR = System.getProperty("os.arch", "");

  // From the specification of ELF: the magic bytes, and the offset and values of e_machine.
  private static final int HEAD_BYTES = 20;
  private static final int MAGIC = 'F' << 24 | 'L' << 16 | 'E' << 8 | 0x7f;
  private static final int MACHINE = 18;
  private static final Map<String, Integer> MACHINES = Map.of("amd64", 62, "aarch64", 183);

  private ElfFile() {}

  /// Says why this process cannot load a library; empty if it may be able to, or if `library` is
  /// not the path of a file.
  static String objection(String library) {
    Integer machine = MACHINES.get(PROCESSOR);
    if (!LINUX || machine == null || !library.contains("/")) {
      return "";
    }
    byte[] head;
    try {
      Path file = Path.of(library);
      if (Files.isDirectory(file)) {
        return library + ": it is a folder";
      }
      try (InputStream in = Files.newInputStream(file)) {
        head = in.readNBytes(HEAD_BYTES);
      }
    } catch (IOException | InvalidPathException _) {
      // The dynamic loader will say why the file cannot be read.
      return "";
    }
    ByteBuffer header = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
    if (head.length < HEAD_BYTES || header.getInt(0) != MAGIC) {
      return library + ": it is not a shared library";
    }
    return header.getShort(MACHINE) == machine
        ? ""
        : library + ": it is a library for another processor than " + PROCESSOR;
  }
}
