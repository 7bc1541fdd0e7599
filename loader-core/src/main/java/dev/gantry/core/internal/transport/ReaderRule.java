// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.threads.ReaderGrowth;
import java.util.Collection;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Decides how many readers a transfer has, and the size of their requests and buffers. All
/// methods are pure functions.
public final class ReaderRule {
  /// The bytes of a reader's buffer beyond the largest read. Small fields of a batch fit into the
  /// buffer of a large field then, and do not wait for the reader's other buffer.
  private static final long SMALL_READS_BYTES = 64 << 10;

  /// The most readers of a load, and the most threads that stage at once in all loads and saves of
  /// a session to or from one device. More readers for one load have not been measured, since the
  /// hosts at hand have 16 cores for each GPU. With 32 staging threads for six concurrent loads,
  /// the loads took a sixth longer there, and a cancelled load returned after 277 ms instead of
  /// 77.
  static final int MAX_READERS = 16;

  /// The size of requests to local files whose bytes are staged for GPUs. The copy from a smaller
  /// buffer begins sooner, and the buffer stays in the processor's cache: on an H200 host, loads
  /// of 1 GB by sixteen readers reached 48 GB/s with requests of 2 or 4 MiB, 39 with 8 MiB and 36
  /// with 16 MiB.
  private static final long STAGED_REQUEST_BYTES = 4L << 20;

  private ReaderRule() {}

  /// How many readers to start: the number in the options, or else a number for the device and the
  /// machine.
  ///
  /// @param inMemory whether a file is on a file system in memory, such as tmpfs
  static int threads(Device device, TransferOptions options, boolean inMemory) {
    if (options.threads() > 0) {
      return options.threads();
    }
    int cores = Runtime.getRuntime().availableProcessors();
    return switch (device) {
      // More readers than cores keep a disk's queue filled while some of them copy.
      case Device.Host _ -> Math.clamp(cores * 2L, 2, 8);
      // Eight readers fill a PCIe 5 x16 link from the page cache of a file system on disk, whose
      // pages are large. From tmpfs, where each page of 4 KiB is looked up singly, it takes twelve.
      // Measured on an H200 host by a ring in C: 53 GB/s; and from tmpfs 53 with twelve readers, 49
      // with eight, 27 with four. Checksums take some of each reader's time.
      case Device.Cuda _ -> Math.clamp(cores, 2, inMemory || options.checksums() != null ? 12 : 8);
    };
  }

  /// The most readers to which [ReaderGrowth] may raise a load, for each device.
  ///
  /// @param threads the number of readers at the load's begin
  static int mostThreads(Device device, TransferOptions options, int threads) {
    if (options.threads() > 0 || !(device instanceof Device.Cuda cuda)) {
      return threads;
    }
    int more =
        Math.clamp(Runtime.getRuntime().availableProcessors(), threads, MAX_READERS) - threads;
    MemoryUse pair = new MemoryUse(0, 2 * options.limits().requestBytes(), 0);
    return threads + (more == 0 ? 0 : Admission.countOf(more, pair, cuda));
  }

  /// Options for a load. If the caller left the size of requests at the default, it is set to suit
  /// the load's files and devices.
  ///
  /// @param files the files of the load; some may come several times
  public static TransferOptions ofLoad(
      Collection<Device> devices, Stream<Location> files, TransferOptions options) {
    PlanLimits limits = options.limits();
    return limits.requestBytes() == PlanLimits.DEFAULT.requestBytes()
            && stages(options.transport())
            && devices.stream().anyMatch(Device.Cuda.class::isInstance)
            && files.allMatch(Location.Local.class::isInstance)
        ? options.withLimits(limits.withRequestBytes(STAGED_REQUEST_BYTES))
        : options;
  }

  /// Options for each of two loads onto a device that run at the same time, while a third thread
  /// uses the tensors that they loaded. On an H200 host with 16 cores, two loads of eight readers
  /// each kept that thread from its core for up to 9 ms; two loads of six readers each fill the
  /// link as well.
  public static TransferOptions ofTwo(Device device, TransferOptions options) {
    return options.threads() == 0 && device instanceof Device.Cuda
        ? options.withThreads(Math.clamp(Runtime.getRuntime().availableProcessors() * 3L / 8, 2, 6))
        : options;
  }

  /// Options for a ring onto a device whose batches are mostly written by the CPU. Decoding takes
  /// more of the readers' time than reading, so eight readers do not fill the link.
  public static TransferOptions ofWriters(Device device, TransferOptions options) {
    return options.threads() == 0 && device instanceof Device.Cuda
        ? options.withThreads(
            Math.clamp(Runtime.getRuntime().availableProcessors(), 2, MAX_READERS))
        : options;
  }

  /// The transport that the options ask for, or null if they leave the choice. If checksums are
  /// wanted, the bytes must pass through the CPU.
  static @Nullable Transport transport(Device device, TransferOptions options) {
    Transport asked = options.transport();
    if (options.checksums() == null) {
      return asked;
    }
    if (asked == Transport.GDS || asked == Transport.COMPAT) {
      throw new MisuseException(
          "a verified load compares what the CPU reads, and "
              + asked
              + " brings bytes past it: leave the transport to the load, or verify without it");
    }
    return asked == null && device instanceof Device.Cuda ? Transport.STAGED : asked;
  }

  /// Whether readers stage bytes if the caller asked for this transport, or for none (null).
  static boolean stages(@Nullable Transport asked) {
    return asked == null || asked == Transport.STAGED;
  }

  /// The size of the staging buffers of an on-demand transfer.
  static long ownBufferBytes(TransferOptions options) {
    return options.limits().requestBytes() + SMALL_READS_BYTES;
  }

  /// The most memory that the readers of an on-demand transfer take for their buffers.
  public static MemoryUse onDemandUse(Device device, TransferOptions options) {
    boolean stages = device instanceof Device.Cuda && stages(options.transport());
    long pinned =
        stages
            ? Math.multiplyExact(2L * threads(device, options, false), ownBufferBytes(options))
            : 0;
    return new MemoryUse(0, pinned, 0);
  }

  /// Whether an on-demand transfer may have a kernel fetch its batches.
  static boolean mayFetch(Device device, TransferOptions options) {
    boolean allowed = options.transport() == null && options.cachePolicy() != CachePolicy.DIRECT;
    return device instanceof Device.Cuda && (options.transport() == Transport.MAPPED || allowed);
  }
}
