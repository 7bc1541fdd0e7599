// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.time.Duration;
import java.util.Map;

/// The counters of a session since it was opened, and the resources that the process holds now;
/// see [Session#metrics].
///
/// Counters never fall. A snapshot that is taken while the session works may mix several moments.
///
/// @param holdings the resources that the whole process holds, since loaded arrays outlive their
///     session
/// @param mostUsed the most memory of each kind that Gantry used at once in the whole process,
///     without the memory that is kept for the next load; the kinds may have reached their maxima
///     at different moments
public record Metrics(
    Loads loads, Reads reads, Saves saves, Batches batches, Holdings holdings, MemoryUse mostUsed) {

  /// @param completed loads that returned
  /// @param failed loads that threw, cancelled loads included
  public record Loads(long completed, long failed) {}

  /// Reads of loads and of datasets' batches.
  ///
  /// @param requests the number of read requests
  /// @param bytesByTransport bytes by each transport that carried any, blocks at the edges included
  /// @param hotBytes bytes that were in the page cache, or came from a remote store
  /// @param coldBytes bytes that were not in the page cache
  /// @param unknownBytes bytes of which the kernel did not say whether they were in the page cache
  /// @param fallbacks files whose transport had to be changed, in loads and saves
  public record Reads(
      long requests,
      Map<Transport, Long> bytesByTransport,
      long hotBytes,
      long coldBytes,
      long unknownBytes,
      long fallbacks) {
    public Reads {
      bytesByTransport = Map.copyOf(bytesByTransport);
    }

    /// Bytes that `transport` carried.
    public long bytes(Transport transport) {
      return bytesByTransport.getOrDefault(transport, 0L);
    }
  }

  /// @param completed writes of one file or several together that returned
  /// @param failed writes that threw, cancelled writes included
  /// @param files files that were completed and have their final names
  /// @param bytesByTransport bytes of files, by each transport that carried any
  public record Saves(
      long completed, long failed, long files, Map<Transport, Long> bytesByTransport) {
    public Saves {
      bytesByTransport = Map.copyOf(bytesByTransport);
    }

    /// Bytes that `transport` carried.
    public long bytes(Transport transport) {
      return bytesByTransport.getOrDefault(transport, 0L);
    }
  }

  /// @param completed batches that datasets handed over
  /// @param waits how often a consumer found no batch ready
  /// @param waited how long consumers waited for batches, in total
  public record Batches(long completed, long waits, Duration waited) {}

  /// @param openFiles files that are open
  /// @param slabs allocations that hold tensors or buffers
  /// @param hostBytes host memory that is neither pinned nor mapped, including memory that is kept
  ///     for the next load
  /// @param mappedBytes files that are mapped, and memory that several processes map
  /// @param pinnedBytes host memory that devices copy from and to, including memory that is kept
  ///     for the next load
  /// @param deviceBytes memory of devices, including memory that is kept for the next load
  /// @param registrations ranges of memory that are registered with cuFile
  public record Holdings(
      long openFiles,
      long slabs,
      long hostBytes,
      long mappedBytes,
      long pinnedBytes,
      long deviceBytes,
      long registrations) {}

  /// Memory by kind, in bytes: the most memory that a load, a dataset or a save takes, or the most
  /// memory that was used at once.
  ///
  /// @param deviceBytes memory of all devices together
  /// @param pinnedBytes pinned host memory, which devices copy from and to
  /// @param hostBytes other host memory
  public record MemoryUse(long deviceBytes, long pinnedBytes, long hostBytes) {
    /// No memory of any kind.
    public static final MemoryUse NOTHING = new MemoryUse(0, 0, 0);

    /// Returns the use of `bytes` bytes of one device's memory, or of host memory that is not
    /// pinned.
    public static MemoryUse on(Device device, long bytes) {
      return switch (device) {
        case Device.Host _ -> new MemoryUse(0, 0, bytes);
        case Device.Cuda _ -> new MemoryUse(bytes, 0, 0);
      };
    }

    /// Returns the sum of this and `other` for each kind. A sum that exceeds a `long` becomes
    /// [Long#MAX_VALUE].
    public MemoryUse plus(MemoryUse other) {
      return new MemoryUse(
          sum(deviceBytes, other.deviceBytes),
          sum(pinnedBytes, other.pinnedBytes),
          sum(hostBytes, other.hostBytes));
    }

    private static long sum(long one, long other) {
      return one > Long.MAX_VALUE - other ? Long.MAX_VALUE : one + other;
    }
  }
}
