// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;

/// How much host memory is available. The kernel grants more than it has and later kills processes
/// that use it, so a load reserves its memory here before it starts and until it has filled it. Thread-safe.
public final class HostMemory {
  private static final int ENOMEM = 12;
  private static final String FREE_SOME = "free some of it, or raise the limit of the container";

  /// Bytes that are reserved and not yet taken from the kernel.
  private static long promisedBytes;

  private HostMemory() {}

  /// Checks that `bytes` are available now, without reserving them.
  ///
  /// @throws TransferException if the machine or this control group has less available
  public static void require(long bytes) {
    require(bytes, FREE_SOME);
  }

  /// As [#require(long)].
  ///
  /// @param change what a user can do about it
  public static void require(long bytes, String change) {
    reserve(bytes, change).close();
  }

  /// Reserves `bytes`: other callers of this class do not get them.
  ///
  /// @throws TransferException if the machine or this control group has less available
  public static Reservation reserve(long bytes) {
    return reserve(bytes, FREE_SOME);
  }

  /// As [#reserve(long)].
  ///
  /// @param change what a user can do about it
  public static synchronized Reservation reserve(long bytes, String change) {
    OptionalLong kernel = kernelBytes();
    OptionalLong available = available(kernel);
    if (available.isPresent() && bytes > available.getAsLong()) {
      String others =
          promisedBytes == 0 ? "" : ", besides " + promisedBytes + " reserved by other loads";
      throw new TransferException(
          "allocate",
          bytes + " bytes of host memory",
          new Failure.Errno(
              ENOMEM,
              "ENOMEM",
              "only " + available.getAsLong() + " bytes are available" + others + "; " + change));
    }
    promisedBytes += bytes;
    if (kernel.orElse(Long.MAX_VALUE) < promisedBytes) {
      HostSlab.freeIdle();
    }
    return new Reservation(bytes);
  }

  private static synchronized void shrink(Reservation reservation, long bytes) {
    long kept = Math.clamp(bytes, 0, reservation.left);
    promisedBytes -= reservation.left - kept;
    reservation.left = kept;
  }

  /// Bytes that one load may still take from the kernel.
  public static final class Reservation implements AutoCloseable {
    private long left;

    private Reservation(long bytes) {
      left = bytes;
    }

    /// Shrinks the reservation to `bytes`: the rest is taken, and the kernel counts it from now on.
    public void keep(long bytes) {
      shrink(this, bytes);
    }

    /// Ends the reservation. Closing twice does nothing.
    @Override
    public void close() {
      keep(0);
    }
  }

  /// The kernel's estimate of what can be used without swapping, or what the limits of the control
  /// groups leave if that is less, with what freed slabs
  /// would give back, minus reservations; empty if
  /// neither can be read.
  public static synchronized OptionalLong availableBytes() {
    return available(kernelBytes());
  }

  private static OptionalLong available(OptionalLong kernel) {
    return kernel.isEmpty()
        ? kernel
        : OptionalLong.of(Math.max(0, kernel.getAsLong() + HostSlab.idleBytes() - promisedBytes));
  }

  /// As [#availableBytes], without what is kept for reuse and without reservations.
  static OptionalLong kernelBytes() {
    try {
      long available = Long.MAX_VALUE;
      try (BufferedReader lines = Files.newBufferedReader(Path.of("/proc/meminfo"))) {
        // Among the first lines.
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          if (line.startsWith("MemAvailable:")) {
            available = Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            break;
          }
        }
      }
      available =
          Math.min(
              available,
              ControlGroups.leftBytes(
                  Path.of("/sys/fs/cgroup"), Files.readAllLines(Path.of("/proc/self/cgroup"))));
      return available == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(available);
    } catch (IOException | NumberFormatException _) {
      return OptionalLong.empty();
    }
  }
}
