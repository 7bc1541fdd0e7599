// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Finds how much memory the kernel's control groups (cgroups, versions 1 and 2) leave to this
/// process.
final class ControlGroups {
  /// The limit that means none: without a limit, version 1 shows a number of bytes somewhat
  /// larger.
  private static final long NO_LIMIT = 1L << 60;

  /// The names of a version's files, and of the fields of `memory.stat`.
  ///
  /// @param cache the page cache, which includes the memory that `shared` counts
  /// @param shared shared memory and tmpfs
  private record Names(String limit, String used, String cache, String shared) {}

  private static final Names VERSION_1 =
      new Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem");
  private static final Names VERSION_2 = new Names("memory.max", "memory.current", "file", "shmem");

  private ControlGroups() {}

  /// The bytes that the tightest limit of the process's groups and of their parents leaves;
  /// [Long#MAX_VALUE] if no group has a limit.
  ///
  /// @param mount the folder where the groups' trees are mounted
  /// @param groups the lines of `/proc/PID/cgroup`: `number:controllers:path`, without controllers
  ///     in version 2
  static long leftBytes(Path mount, List<String> groups) throws IOException {
    long left = Long.MAX_VALUE;
    for (String line : groups) {
      String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        left = Math.min(left, leftBytes(mount, parts[2], VERSION_2));
      } else if (parts.length == 3 && List.of(parts[1].split(",")).contains("memory")) {
        left = Math.min(left, leftBytes(mount.resolve("memory"), parts[2], VERSION_1));
      }
    }
    return left;
  }

  private static long leftBytes(Path root, String group, Names names) throws IOException {
    long left = Long.MAX_VALUE;
    Path at = root.resolve(group.substring(group.startsWith("/") ? 1 : 0)).normalize();
    if (!at.startsWith(root)) {
      // The process sees a tree that does not contain its own group, so the tree's root is used.
      at = root;
    }
    for (; at != null && at.startsWith(root); at = at.getParent()) {
      Path limit = at.resolve(names.limit());
      if (!Files.isReadable(limit)) {
        continue;
      }
      String most = Files.readString(limit).strip();
      long mostBytes = most.equals("max") ? NO_LIMIT : Long.parseUnsignedLong(most);
      if (mostBytes >= 0 && mostBytes < NO_LIMIT) {
        long used = Long.parseLong(Files.readString(at.resolve(names.used())).strip());
        left = Math.min(left, Math.max(0, mostBytes - used + pageCacheBytes(at, names)));
      }
    }
    return left;
  }

  /// The bytes of page cache that the kernel can free. A group's used memory includes its page
  /// cache. The page cache includes shared memory and tmpfs, which cannot be freed and are
  /// therefore subtracted.
  private static long pageCacheBytes(Path group, Names names) throws IOException {
    List<String> lines = Files.readAllLines(group.resolve("memory.stat"));
    return bytes(lines, names.cache()) - bytes(lines, names.shared());
  }

  private static long bytes(List<String> lines, String name) {
    return lines.stream()
        .filter(line -> line.startsWith(name + " "))
        .mapToLong(line -> Long.parseLong(line.substring(name.length()).strip()))
        .sum();
  }
}
