// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;

/// How much host memory is available. The kernel grants more than it has and later kills processes
/// that use it, so memory is reserved here before it is mapped. From then on it is not available to others, though
/// the kernel says so until each of its pages is touched. Thread-safe.
public final class HostMemory {
  private static final int ENOMEM = 12;
  private static final String FREE_SOME = "free some of it, or raise the limit of the container";

  /// The kernel's figures take 0.1 ms to read, and batches ask for them.
  private static final long KEPT_NANOS = 100_000_000L;

  /// Less is not worth a look at its pages.
  private static final long LEAST_MAPPED_BYTES = 1 << 20;

  /// Replaced by tests.
  static RegisteredPages registered = RegisteredPages.OF_USER;

  /// Bytes that are reserved and not yet mapped.
  private static long promisedBytes;

  /// The mapped memory by its addresses.
  private static final Map<Long, LazyPages> MAPPED = new HashMap<>();

  private static long mappedBytes;

  /// The bytes of mapped memory that had no pages at the last look.
  private static long untouchedBytes;

  /// The bytes that the kernel would have available if this process had mapped and registered nothing: touching
  /// pages, mapping memory and unmapping it does not change this, so it stays right for a while.
  private static OptionalLong withoutMapped = OptionalLong.empty();

  private static long lookedNanos = System.nanoTime() - KEPT_NANOS;

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
    OptionalLong available = availableBytes();
    if (available.isPresent() && bytes > available.getAsLong()) {
      // Others may have given memory back since.
      look();
      available = availableBytes();
    }
    if (available.isPresent() && bytes > available.getAsLong()) {
      long reserved = promisedBytes + untouchedBytes;
      String others = reserved == 0 ? "" : ", besides " + reserved + " reserved by other loads";
      throw new TransferException(
          "allocate",
          bytes + " bytes of host memory",
          new Failure.Errno(
              ENOMEM,
              "ENOMEM",
              "only " + available.getAsLong() + " bytes are available" + others + "; " + change));
    }
    promisedBytes += bytes;
    if (kernelBytes().orElse(Long.MAX_VALUE) < promisedBytes) {
      HostSlab.freeIdle();
    }
    return new Reservation(bytes);
  }

  private static synchronized void shrink(Reservation reservation, long bytes) {
    long kept = Math.clamp(bytes, 0, reservation.left);
    promisedBytes -= reservation.left - kept;
    reservation.left = kept;
  }

  /// A slab, if its bytes are available.
  ///
  /// @throws TransferException if the machine or this control group has less available
  public static HostSlab allocate(long bytes) {
    try (Reservation room = reserve(bytes)) {
      return room.allocate(bytes);
    }
  }

  private static synchronized HostSlab allocate(Reservation reservation, long bytes) {
    HostSlab slab = HostSlab.allocate(bytes);
    shrink(reservation, reservation.left - bytes);
    return slab;
  }

  /// Bytes that one load may still map.
  public static final class Reservation implements AutoCloseable {
    private long left;

    private Reservation(long bytes) {
      left = bytes;
    }

    /// A slab out of the reservation, which shrinks by its size.
    ///
    /// @throws TransferException if the kernel has no room
    public HostSlab allocate(long bytes) {
      return HostMemory.allocate(this, bytes);
    }

    /// As [#allocate], of pinned memory.
    public PinnedSlab pin(CudaContext context, long bytes) {
      PinnedSlab slab = PinnedSlab.allocateReserved(context, bytes);
      shrink(this, left - bytes);
      return slab;
    }

    /// Takes memory of the kernel that the caller has mapped out of the reservation. It is not available to
    /// others until [HostMemory#unmappedOnly].
    ///
    /// @param address page-aligned
    public void mapped(long address, long bytes) {
      HostMemory.mapped(this, address, bytes);
    }

    /// Ends the reservation. Closing twice does nothing.
    @Override
    public void close() {
      shrink(this, 0);
    }
  }

  /// The kernel's estimate of what can be used without swapping, or what the limits of the control
  /// groups leave if that is less, with what freed slabs would give back, minus reservations, pages that
  /// slabs have not touched yet, and [RegisteredPages]; empty if neither can be read. At most 0.1 s old.
  public static synchronized OptionalLong availableBytes() {
    OptionalLong kernel = kernelBytes();
    return kernel.isEmpty()
        ? kernel
        : OptionalLong.of(Math.max(0, kernel.getAsLong() + HostSlab.idleBytes() - promisedBytes));
  }

  /// As [#availableBytes], without what is kept for reuse and without reservations.
  static synchronized OptionalLong kernelBytes() {
    if (System.nanoTime() - lookedNanos >= KEPT_NANOS) {
      look();
    }
    return withoutMapped.isEmpty()
        ? withoutMapped
        : OptionalLong.of(withoutMapped.getAsLong() - mappedBytes - registered.ownBytes());
  }

  /// Asks the kernel and the other processes anew.
  static synchronized void look() {
    untouchedBytes = MAPPED.values().stream().mapToLong(LazyPages::untouchedBytes).sum();
    long touched = mappedBytes - untouchedBytes;
    // Afterwards: pages that are touched meanwhile count twice, and not as available.
    OptionalLong kernel = ofKernel();
    withoutMapped =
        kernel.isEmpty()
            ? kernel
            : OptionalLong.of(kernel.getAsLong() + touched - registered.othersBytes());
    lookedNanos = System.nanoTime();
  }

  /// Memory whose pages the kernel provides later was mapped.
  static synchronized void mapped(long address, long bytes) {
    if (bytes >= LEAST_MAPPED_BYTES) {
      MAPPED.put(address, new LazyPages(address, bytes));
      mappedBytes += bytes;
    }
  }

  private static synchronized void mapped(Reservation reservation, long address, long bytes) {
    mapped(address, bytes);
    shrink(reservation, reservation.left - bytes);
  }

  /// Memory is about to be unmapped.
  static synchronized void unmapping(long address) {
    LazyPages gone = MAPPED.remove(address);
    mappedBytes -= gone == null ? 0 : gone.size();
  }

  /// Memory of [Reservation#mapped] is no longer mapped. Its pages stay as long as a file has them.
  public static synchronized void unmappedOnly(long address) {
    unmapping(address);
    lookedNanos = System.nanoTime() - KEPT_NANOS;
  }

  /// The bytes that are reserved and not yet mapped.
  static synchronized long promised() {
    return promisedBytes;
  }

  private static OptionalLong ofKernel() {
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
