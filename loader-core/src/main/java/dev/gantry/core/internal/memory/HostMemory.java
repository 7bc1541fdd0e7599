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
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/// Knows how much host memory is available. The kernel grants more memory than the machine has,
/// and later kills processes that use it; therefore an [Admission] promises memory before it is
/// mapped. The kernel counts mapped memory as available until each of its pages is touched; this
/// class subtracts it. Thread-safe.
public final class HostMemory {
  private static final int ENOMEM = 12;

  /// The kernel's figures are asked for at most this often: they take 0.1 ms to read, and every batch needs them.
  private static final long KEPT_NANOS = 100_000_000L;

  /// Smaller mappings are ignored: their untouched pages count as available.
  private static final long LEAST_MAPPED_BYTES = 1 << 20;

  /// The page cache that is registered with the CUDA driver. Tests replace this.
  static RegisteredPages registered = RegisteredPages.OF_USER;

  /// The keepers that have memory now.
  private static final Set<Keeper> KEEPERS = ConcurrentHashMap.newKeySet();

  /// The bytes that are promised and not yet mapped.
  private static long promisedBytes;

  /// Mapped memory by its address.
  private static final Map<Long, LazyPages> MAPPED = new HashMap<>();

  private static long mappedBytes;

  /// The bytes of mapped memory that had no pages when [#look] last ran.
  private static long untouchedBytes;

  /// The bytes that would be available if this process had mapped and registered nothing. Touching, mapping and
  /// unmapping memory does not change this number, so it stays right for a while.
  private static OptionalLong withoutMapped = OptionalLong.empty();

  private static long lookedNanos = System.nanoTime() - KEPT_NANOS;

  private HostMemory() {}

  /// Keeps memory for later uses, and gives up what nobody uses now if a promise needs it.
  /// Thread-safe.
  public interface Keeper {
    /// The bytes that nobody uses now.
    long unusedBytes();

    /// Gives up at least `bytes` that nobody uses, or all there are. The caller holds no lock of
    /// [HostMemory].
    void giveUp(long bytes);
  }

  /// Has promises ask `keeper` for memory. Does nothing if they do so already.
  public static void add(Keeper keeper) {
    try {
      boolean _ = KEEPERS.add(keeper);
    } catch (OutOfMemoryError _) {
      // The keeper gives its memory up later, when it was not used for long.
    }
  }

  /// Ends what [#add] began.
  public static void remove(Keeper keeper) {
    boolean _ = KEEPERS.remove(keeper);
  }

  /// Promises `bytes` that are not mapped yet to the caller, so that no other caller gets the same
  /// bytes. The caller must not hold this class's lock: idle memory is freed here if the promise
  /// needs it, and a thread that frees idle memory takes this lock for each mapping. If there is
  /// too little memory, the keepers give up theirs.
  ///
  /// @param change what a user can do about a refusal
  /// @throws TransferException if the machine or this control group has less available
  static void promise(long bytes, String change) {
    if (!isPromised(bytes)) {
      // While another thread frees idle memory, the memory counts neither as idle nor as
      // available, so this waits for that thread and asks again.
      HostSlab.awaitReleases();
      if (!isPromised(bytes)) {
        giveUp(bytes);
        requirePromised(bytes, change);
      }
    }
    if (needsIdle()) {
      Cleanup.orUndo(HostSlab::freeIdle, () -> endPromise(bytes));
    }
  }

  /// Has the keepers give up what is missing, unless all of them together have less.
  private static void giveUp(long bytes) {
    long unused = KEEPERS.stream().mapToLong(Keeper::unusedBytes).sum();
    for (Keeper keeper : KEEPERS) {
      long missing = bytes - availableBytes().orElse(bytes);
      if (missing > 0 && missing <= unused) {
        unused -= keeper.unusedBytes();
        keeper.giveUp(missing);
      }
    }
  }

  private static synchronized boolean isPromised(long bytes) {
    OptionalLong available = availableBytes();
    if (available.isPresent() && bytes > available.getAsLong()) {
      // The figures may be old, and others may have given memory back since.
      look();
      available = availableBytes();
    }
    boolean fits = available.isEmpty() || bytes <= available.getAsLong();
    promisedBytes += fits ? bytes : 0;
    return fits;
  }

  private static synchronized void requirePromised(long bytes, String change) {
    if (isPromised(bytes)) {
      return;
    }
    long reserved = promisedBytes + untouchedBytes;
    String others = reserved == 0 ? "" : ", besides " + reserved + " reserved by other loads";
    throw new TransferException(
        "allocate",
        bytes + " bytes of host memory",
        new Failure.Errno(
            ENOMEM,
            "ENOMEM",
            "only "
                + availableBytes().orElseThrow()
                + " bytes are available"
                + others
                + "; "
                + change));
  }

  /// Whether idle memory must be freed for what is promised.
  private static synchronized boolean needsIdle() {
    return kernelBytes().orElse(Long.MAX_VALUE) < promisedBytes;
  }

  /// Ends the promise of bytes that were mapped, or are not needed.
  static synchronized void endPromise(long bytes) {
    promisedBytes -= bytes;
  }

  /// Does `work`, which maps promised memory, while no other thread can ask how much memory is
  /// available. Thus every byte counts either as promised or as mapped, and never as both.
  static synchronized <T> T keepingPromises(Supplier<T> work) {
    return work.get();
  }

  /// The bytes of host memory that can be promised now: the kernel's estimate of the memory that
  /// can be used without swapping, or the bytes that the limits of the control groups leave if
  /// that is less. Idle memory that is kept for the next slabs is included; promised memory, pages
  /// that slabs have not touched yet and [RegisteredPages] are subtracted. Empty if the kernel
  /// tells neither figure. The figure is at most 0.1 s old.
  public static synchronized OptionalLong availableBytes() {
    OptionalLong kernel = kernelBytes();
    return kernel.isEmpty()
        ? kernel
        : OptionalLong.of(Math.max(0, kernel.getAsLong() + HostSlab.idleBytes() - promisedBytes));
  }

  /// The available bytes as in [#availableBytes], but without the idle memory that is kept for the
  /// next slabs, and without subtracting promises.
  static synchronized OptionalLong kernelBytes() {
    if (System.nanoTime() - lookedNanos >= KEPT_NANOS) {
      look();
    }
    return withoutMapped.isEmpty()
        ? withoutMapped
        : OptionalLong.of(withoutMapped.getAsLong() - mappedBytes - registered.ownBytes());
  }

  /// Asks the kernel again for the available memory, and the user's other processes for their
  /// registered pages.
  static synchronized void look() {
    untouchedBytes = MAPPED.values().stream().mapToLong(LazyPages::untouchedBytes).sum();
    long touched = mappedBytes - untouchedBytes;
    // The kernel is asked last: a page that is touched between the two steps is then subtracted
    // twice, so the result is too small rather than too large.
    OptionalLong kernel = ofKernel();
    withoutMapped =
        kernel.isEmpty()
            ? kernel
            : OptionalLong.of(kernel.getAsLong() + touched - registered.othersBytes());
    lookedNanos = System.nanoTime();
  }

  /// Notes that memory was mapped whose pages the kernel provides later.
  static synchronized void mapped(long address, long bytes) {
    if (bytes >= LEAST_MAPPED_BYTES) {
      MAPPED.put(address, new LazyPages(address, bytes));
      mappedBytes += bytes;
    }
  }

  /// Notes that memory is about to be unmapped.
  static synchronized void unmapping(long address) {
    LazyPages gone = MAPPED.remove(address);
    mappedBytes -= gone == null ? 0 : gone.size();
  }

  /// Notes that memory of [Admission#mapped] was unmapped. Its pages stay in memory as long as
  /// they belong to a file.
  public static synchronized void unmappedOnly(long address) {
    unmapping(address);
    lookedNanos = System.nanoTime() - KEPT_NANOS;
  }

  /// The bytes that are promised and not yet mapped.
  static synchronized long promised() {
    return promisedBytes;
  }

  private static OptionalLong ofKernel() {
    try {
      long available = Long.MAX_VALUE;
      try (BufferedReader lines = Files.newBufferedReader(Path.of("/proc/meminfo"))) {
        // The figure is among the first lines.
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
