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

  /// What the kernel reckons can be used without swapping, or what is left of the control group's
  /// limit if that is less; empty where neither can be read.
  public static OptionalLong availableBytes() {
    try {
      long available = Long.MAX_VALUE;
      for (String line : Files.readAllLines(Path.of("/proc/meminfo"))) {
        if (line.startsWith("MemAvailable:")) {
          available = Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
        }
      }
      Path limit = CGROUP.resolve("memory.max");
      if (Files.isReadable(limit)) {
        String most = Files.readString(limit).strip();
        if (!most.equals("max")) {
          // The group's page cache counts as used, yet makes room when it must.
          long used =
              Long.parseLong(Files.readString(CGROUP.resolve("memory.current")).strip())
                  - pageCacheBytes();
          available = Math.min(available, Math.max(0, Long.parseLong(most) - used));
        }
      }
      return available == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(available);
    } catch (IOException | NumberFormatException _) {
      return OptionalLong.empty();
    }
  }

  private static long pageCacheBytes() throws IOException {
    for (String line : Files.readAllLines(CGROUP.resolve("memory.stat"))) {
      if (line.startsWith("file ")) {
        return Long.parseLong(line.substring("file ".length()).strip());
      }
    }
    return 0;
  }
}
