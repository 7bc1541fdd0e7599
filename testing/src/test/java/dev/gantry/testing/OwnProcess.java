// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/// The kernel's figures for this process.
public final class OwnProcess {
  private static final long PAGE_BYTES = 4096;

  private OwnProcess() {}

  /// Returns the target of each open descriptor: a file, a socket or a pipe.
  public static List<String> descriptors() throws IOException {
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
      return descriptors.flatMap(descriptor -> target(descriptor).stream()).toList();
    }
  }

  /// Returns the targets of open descriptors, without those that the JVM may open at any time:
  /// jars, and the kernel's figures for memory and processors.
  public static List<String> programsDescriptors() throws IOException {
    return descriptors().stream()
        .filter(target -> !target.matches(".*\\.jar( \\(deleted\\))?|/(proc|sys)/.*"))
        .sorted()
        .toList();
  }

  /// Returns the kernel's entry for each open socket: protocol, addresses and state in the
  /// kernel's notation, or the path of a Unix socket.
  public static List<String> sockets() throws IOException {
    Map<String, String> known = new HashMap<>();
    for (String protocol : List.of("tcp", "tcp6", "udp", "udp6")) {
      for (String[] line : table(protocol)) {
        known.put(line[9], protocol + " " + line[1] + " " + line[2] + " " + line[3]);
      }
    }
    for (String[] line : table("unix")) {
      known.put(line[6], "unix " + (line.length > 7 ? line[7] : "without a path"));
    }
    return descriptors().stream()
        .filter(target -> target.startsWith("socket:"))
        .map(target -> known.getOrDefault(target.replaceAll("\\D", ""), "without a connection"))
        .sorted()
        .toList();
  }

  /// Returns the words of each line of a table of sockets; empty if the kernel lacks the protocol.
  private static List<String[]> table(String protocol) throws IOException {
    Path table = Path.of("/proc/self/net", protocol);
    if (!Files.exists(table)) {
      return List.of();
    }
    return Files.readAllLines(table).stream()
        .skip(1)
        .map(line -> line.trim().split("\\s+"))
        .toList();
  }

  /// Returns the resident memory in bytes.
  public static long residentBytes() throws IOException {
    String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ", 3);
    return Long.parseLong(pages[1]) * PAGE_BYTES;
  }

  /// Returns the resident bytes of all mappings by name, where digits in names do not count.
  /// Mappings without a name are grouped by their size.
  public static SortedMap<String, Long> residentByName() throws IOException {
    SortedMap<String, Long> all = new TreeMap<>();
    String name = "";
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
      String[] words = line.split("\\s+", 6);
      if (words[0].contains("-")) {
        name =
            words.length < 6 || words[5].isBlank()
                ? bySize(words[0])
                : words[5].replaceAll("\\d+", "N");
      } else if (words[0].equals("Rss:")) {
        all.merge(name, Long.parseLong(words[1]) << 10, Long::sum);
      }
    }
    return all;
  }

  /// @param range the first and the last address of a mapping, as in `7f00-7fff`
  private static String bySize(String range) {
    String[] ends = range.split("-", 2);
    long bytes = Long.parseUnsignedLong(ends[1], 16) - Long.parseUnsignedLong(ends[0], 16);
    return "without a name, less than " + 2 * Long.highestOneBit(bytes) + " bytes each";
  }

  /// Returns the lines of the kernel's list of mappings.
  public static List<String> mappings() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/maps"));
  }

  /// Returns the target of a descriptor; empty if the descriptor is closed by now, like the one
  /// that listed the directory.
  private static Optional<String> target(Path descriptor) {
    try {
      return Optional.of(Files.readSymbolicLink(descriptor).toString());
    } catch (IOException _) {
      return Optional.empty();
    }
  }
}
