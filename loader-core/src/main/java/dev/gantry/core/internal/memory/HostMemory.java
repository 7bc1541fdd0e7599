package dev.gantry.core.internal.memory;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;

/// How much memory the CPU has left. The kernel promises more than it has, and ends processes that
/// believe it: so a load asks here before it starts, and what it was told it may have is kept for
/// it until it has filled it. Thread-safe.
public final class HostMemory {
  private static final int ENOMEM = 12;

  /// Bytes that were reserved, and are not taken from the kernel yet.
  private static long promisedBytes;

  private HostMemory() {}

  /// Checks that `bytes` are available now, and keeps none of them.
  ///
  /// @throws TransferException if `bytes` are more than the machine or this control group has to
  ///     give
  public static void require(long bytes) {
    reserve(bytes).close();
  }

  /// Keeps `bytes` from all others who ask here.
  ///
  /// @throws TransferException if `bytes` are more than the machine or this control group has to
  ///     give
  public static synchronized Reservation reserve(long bytes) {
    OptionalLong available = availableBytes();
    if (available.isPresent() && bytes > available.getAsLong()) {
      String others =
          promisedBytes == 0 ? "" : ", besides " + promisedBytes + " that other loads will fill";
      throw new TransferException(
          "allocate",
          bytes + " bytes of host memory",
          new Failure.Errno(
              ENOMEM, "ENOMEM", "only " + available.getAsLong() + " bytes are available" + others));
    }
    promisedBytes += bytes;
    return new Reservation(bytes);
  }

  private static synchronized void shrink(Reservation reservation, long bytes) {
    long kept = Math.clamp(bytes, 0, reservation.left);
    promisedBytes -= reservation.left - kept;
    reservation.left = kept;
  }

  /// Bytes that one load may take from the kernel.
  public static final class Reservation implements AutoCloseable {
    private long left;

    private Reservation(long bytes) {
      left = bytes;
    }

    /// All but `bytes` are taken: the kernel counts them from now on.
    public void keep(long bytes) {
      shrink(this, bytes);
    }

    /// Gives back what was not taken. Closing twice does nothing.
    @Override
    public void close() {
      keep(0);
    }
  }

  /// What the kernel reckons can be used without swapping, or what is left of the limits of its
  /// control groups if that is less, without what is reserved; empty where neither can be read.
  public static synchronized OptionalLong availableBytes() {
    try {
      long available = Long.MAX_VALUE;
      for (String line : Files.readAllLines(Path.of("/proc/meminfo"))) {
        if (line.startsWith("MemAvailable:")) {
          available = Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
        }
      }
      available =
          Math.min(
              available,
              ControlGroups.leftBytes(
                  Path.of("/sys/fs/cgroup"), Files.readAllLines(Path.of("/proc/self/cgroup"))));
      return available == Long.MAX_VALUE
          ? OptionalLong.empty()
          : OptionalLong.of(Math.max(0, available - promisedBytes));
    } catch (IOException | NumberFormatException _) {
      return OptionalLong.empty();
    }
  }
}
