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
import java.util.function.Supplier;

/// How much host memory is available. The kernel grants more than it has and later kills processes
/// that use it, so an [Admission] promises memory before it is mapped. From then on it is not available to others, though
/// the kernel says so until each of its pages is touched. Thread-safe.
public final class HostMemory {
  private static final int ENOMEM = 12;

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

  /// Promises `bytes` that are not mapped yet: others do not get them.
  ///
  /// @param change what a user can do about a refusal
  /// @throws TransferException if the machine or this control group has less available
  static synchronized void promise(long bytes, String change) {
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
  }

  /// The bytes were mapped, or are not needed.
  static synchronized void endPromise(long bytes) {
    promisedBytes -= bytes;
  }

  /// Does `work` while nobody else asks for memory: what it maps counts once, as promised or as mapped.
  static synchronized <T> T keepingPromises(Supplier<T> work) {
    return work.get();
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

  /// Memory is about to be unmapped.
  static synchronized void unmapping(long address) {
    LazyPages gone = MAPPED.remove(address);
    mappedBytes -= gone == null ? 0 : gone.size();
  }

  /// Memory of [Admission#mapped] is no longer mapped. Its pages stay as long as a file has them.
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
