// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.time.Duration;
import java.util.Map;

/// What a session has done since it was opened, and what the process holds now: see
/// [Session#metrics].
///
/// Counters never fall. A snapshot that is taken while the session works may mix several moments.
///
/// @param holdings of the whole process, since what a session loaded outlives it
/// @param mostUsed the most memory that the whole process used at once by Gantry, of each kind at its own
///     moment, without what is kept for the next load
public record Metrics(
    Loads loads, Reads reads, Saves saves, Batches batches, Holdings holdings, MemoryUse mostUsed) {

  /// @param completed loads that returned
  /// @param failed loads that threw, cancelled ones included
  public record Loads(long completed, long failed) {}

  /// Reads of loads and of datasets' batches.
  ///
  /// @param requests how many there were
  /// @param bytesByTransport bytes by each transport that carried any, blocks at the edges
  ///     included
  /// @param hotBytes of these, the bytes that were in the page cache, or came from a remote store
  /// @param coldBytes the bytes that were not in the page cache
  /// @param unknownBytes the bytes of which the kernel did not say
  /// @param fallbacks files that had to change their transport, in loads and saves
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
  /// @param failed those that threw, cancelled ones included
  /// @param files that got their names
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
  /// @param waited how long consumers waited then, altogether
  public record Batches(long completed, long waits, Duration waited) {}

  /// @param openFiles files that are open
  /// @param slabs pieces of memory
  /// @param hostBytes of host memory, without pinned and mapped, what is kept for the next load included
  /// @param mappedBytes of files that are mapped
  /// @param pinnedBytes of host memory that devices copy from and to, what is kept likewise
  /// @param deviceBytes of memory of devices, likewise
  /// @param registrations pieces of memory that cuFile knows
  public record Holdings(
      long openFiles,
      long slabs,
      long hostBytes,
      long mappedBytes,
      long pinnedBytes,
      long deviceBytes,
      long registrations) {}

  /// Memory by kind, in bytes: the most that a load, a dataset or a save takes, or the most that was used
  /// at once.
  ///
  /// @param deviceBytes of all devices together
  /// @param pinnedBytes of host memory that devices copy from and to
  /// @param hostBytes of other host memory
  public record MemoryUse(long deviceBytes, long pinnedBytes, long hostBytes) {
    /// No memory of any kind.
    public static final MemoryUse NOTHING = new MemoryUse(0, 0, 0);

    /// Memory of a device, or of the host.
    public static MemoryUse on(Device device, long bytes) {
      return switch (device) {
        case Device.Host _ -> new MemoryUse(0, 0, bytes);
        case Device.Cuda _ -> new MemoryUse(bytes, 0, 0);
      };
    }

    /// What both take at the same time. More than a `long` counts is more than any machine has.
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
