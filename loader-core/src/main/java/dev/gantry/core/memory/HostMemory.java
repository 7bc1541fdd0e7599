package dev.gantry.core.memory;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;

/// How much memory the CPU has left. The kernel promises more than it has, and ends processes that
/// believe it: so a load asks here before it starts.
public final class HostMemory {
  private static final int ENOMEM = 12;
  private static final Path CGROUP = Path.of("/sys/fs/cgroup");

  private HostMemory() {}

  /// @throws TransferException if `bytes` are more than the machine or this control group has to
  ///     give
  public static void require(long bytes) {
    OptionalLong available = availableBytes();
    if (available.isPresent() && bytes > available.getAsLong()) {
      throw new TransferException(
          "allocate",
          bytes + " bytes of host memory",
          new Failure.Errno(
              ENOMEM, "ENOMEM", "only " + available.getAsLong() + " bytes are available"));
    }
  }

  /// What the kernel reckons can be used without swapping, or what is left of the limits of its
  /// control groups (version 2) if that is less; empty where neither can be read.
  public static OptionalLong availableBytes() {
    try {
      long available = Long.MAX_VALUE;
      for (String line : Files.readAllLines(Path.of("/proc/meminfo"))) {
        if (line.startsWith("MemAvailable:")) {
          available = Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
        }
      }
      available = Math.min(available, leftOfGroups(CGROUP, ownGroup()));
      return available == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(available);
    } catch (IOException | NumberFormatException _) {
      return OptionalLong.empty();
    }
  }

  /// This process's control group, as a path from the root of version 2's tree.
  private static String ownGroup() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/cgroup"))) {
      if (line.startsWith("0::/")) {
        return line.substring("0::/".length());
      }
    }
    return "";
  }

  /// What a control group and those above it leave, each of which may have a limit.
  static long leftOfGroups(Path root, String group) throws IOException {
    long left = Long.MAX_VALUE;
    Path at = root.resolve(group).normalize();
    if (!at.startsWith(root)) {
      // The process is outside of the tree that it sees.
      at = root;
    }
    for (; at != null && at.startsWith(root); at = at.getParent()) {
      Path limit = at.resolve("memory.max");
      if (!Files.isReadable(limit)) {
        continue;
      }
      String most = Files.readString(limit).strip();
      if (!most.equals("max")) {
        long used = Long.parseLong(Files.readString(at.resolve("memory.current")).strip());
        left = Math.min(left, Math.max(0, Long.parseLong(most) - used + pageCacheBytes(at)));
      }
    }
    return left;
  }

  /// The group's page cache counts as used, yet makes room when it must; shared memory and tmpfs,
  /// which the kernel counts among it, do not.
  private static long pageCacheBytes(Path group) throws IOException {
    long file = 0;
    long shared = 0;
    for (String line : Files.readAllLines(group.resolve("memory.stat"))) {
      if (line.startsWith("file ")) {
        file = Long.parseLong(line.substring("file ".length()).strip());
      } else if (line.startsWith("shmem ")) {
        shared = Long.parseLong(line.substring("shmem ".length()).strip());
      }
    }
    return file - shared;
  }
}
