// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Transport;
import org.jspecify.annotations.Nullable;

/// How many readers a transfer has, and what its options mean for them. Pure.
public final class ReaderRule {
  /// Room behind the largest read in a reader's buffer: a batch's small fields share the buffer of a
  /// large one, instead of waiting for the other buffer.
  private static final long SMALL_READS_BYTES = 64 << 10;

  private ReaderRule() {}

  /// How many readers to start: the number in the options, or what suits the device and the machine.
  ///
  /// @param inMemory whether the file system keeps a file in memory
  static int threads(Device device, TransferOptions options, boolean inMemory) {
    if (options.threads() > 0) {
      return options.threads();
    }
    int cores = Runtime.getRuntime().availableProcessors();
    return switch (device) {
      // More readers than cores keep a disk's queue filled while the others copy.
      case Device.Host _ -> Math.clamp(cores * 2L, 2, 8);
      // Eight readers fill a PCIe 5 x16 link from the page cache of a disk's file system, where
      // pages are large; twelve from tmpfs, where each of 4 KiB is looked up for itself. Measured
      // on an H200 host, by a ring in C: 53 GB/s, and 53 with twelve, 49 with eight, 27 with four.
      // Sums take some of each reader's time.
      case Device.Cuda _ -> Math.clamp(cores, 2, inMemory || options.checksums() != null ? 12 : 8);
    };
  }

  /// What is to be summed goes by way of the CPU.
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

  /// Whether readers stage where this transport was asked for, or none was.
  static boolean stages(@Nullable Transport asked) {
    return asked == null || asked == Transport.STAGED;
  }

  /// The size of the staging buffers of an on-demand transfer.
  static long ownBufferBytes(TransferOptions options) {
    return options.limits().requestBytes() + SMALL_READS_BYTES;
  }

  /// The most that the readers of an on-demand transfer take for themselves.
  public static MemoryUse onDemandUse(Device device, TransferOptions options) {
    boolean stages = device instanceof Device.Cuda && stages(options.transport());
    long pinned =
        stages
            ? Math.multiplyExact(2L * threads(device, options, false), ownBufferBytes(options))
            : 0;
    return new MemoryUse(0, pinned, 0);
  }

  /// Whether an on-demand transfer may have a kernel fetch what it brings.
  static boolean mayFetch(Device device, TransferOptions options) {
    boolean allowed = options.transport() == null && options.cachePolicy() != CachePolicy.DIRECT;
    return device instanceof Device.Cuda && (options.transport() == Transport.MAPPED || allowed);
  }
}
