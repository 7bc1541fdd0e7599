// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// Measures a session's reads past the page cache, for each disk: how fast the reads are, and how
/// many requests at once the disk needs for that speed. Thread-safe.
public final class DiskSpeeds {
  /// The size from which on requests are measured: in smaller requests the call takes more time
  /// than the transfer of the bytes.
  public static final long LEAST_BYTES = 256 << 10;

  private final Map<Long, Watch> disks = new TreeMap<>();

  /// The running measurement of one disk; the lock on `disks` guards it.
  private static final class Watch {
    private int underWay;
    private long busySince;
    private long busyNanos;
    private long requests;
    private long bytes;
    private long requestNanos;
    private double mostOfOne;
  }

  /// The measurement of one disk, over all reads so far.
  ///
  /// @param name the disk's name, or its device numbers
  /// @param requests the number of requests of [#LEAST_BYTES] or more that went past the page
  ///     cache
  /// @param bytes the number of bytes that these requests read
  /// @param busyNanos the time during which at least one request was under way
  /// @param requestNanos the sum of the durations of all requests
  /// @param mostOfOne the highest speed that a single request reached, in bytes a second
  public record Disk(
      String name, long requests, long bytes, long busyNanos, long requestNanos, double mostOfOne) {
    /// Returns the speed of all requests together, in bytes a second.
    public double bandwidth() {
      return bytes * 1e9 / Math.max(1, busyNanos);
    }

    /// Returns how long a request takes on average, in seconds.
    public double latency() {
      return requestNanos / 1e9 / Math.max(1, requests);
    }

    /// Returns how many requests were under way at once, on average.
    public double underWay() {
      return (double) requestNanos / Math.max(1, busyNanos);
    }

    /// Returns how many requests at once would reach the bandwidth: bandwidth × latency / size.
    /// The latency is the latency of the fastest request, which waited for the fewest other
    /// requests.
    public int depth() {
      return (int) Math.max(1, Math.ceil(bandwidth() / Math.max(1, mostOfOne)));
    }
  }

  /// Records that a request of [#LEAST_BYTES] or more begins.
  ///
  /// @param device the number of the device that the file is on
  /// @param nanos the time now, by [System#nanoTime]
  public void begin(long device, long nanos) {
    synchronized (disks) {
      Watch disk = disks.computeIfAbsent(device, _ -> new Watch());
      if (disk.underWay++ == 0) {
        disk.busySince = nanos;
      }
    }
  }

  /// Records that a request ends.
  ///
  /// @param begun when the request began
  /// @param nanos the time now, by [System#nanoTime]
  /// @param bytes the number of bytes that were read past the page cache; 0 if they were read
  ///     through it, or the read failed
  public void end(long device, long begun, long nanos, long bytes) {
    synchronized (disks) {
      Watch disk = disks.computeIfAbsent(device, _ -> new Watch());
      disk.busyNanos += nanos - disk.busySince;
      disk.busySince = nanos;
      disk.underWay--;
      if (bytes > 0) {
        disk.requests++;
        disk.bytes += bytes;
        disk.requestNanos += nanos - begun;
        disk.mostOfOne = Math.max(disk.mostOfOne, bytes * 1e9 / Math.max(1, nanos - begun));
      }
    }
  }

  /// Returns the disks that were read from.
  public List<Disk> disks() {
    synchronized (disks) {
      return disks.entrySet().stream()
          .filter(entry -> entry.getValue().requests > 0)
          .map(entry -> {
            Watch disk = entry.getValue();
            return new Disk(
                name(entry.getKey()),
                disk.requests,
                disk.bytes,
                disk.busyNanos,
                disk.requestNanos,
                disk.mostOfOne);
          })
          .toList();
    }
  }

  /// Returns the device's name in sysfs, or its numbers if sysfs does not have it, since sysfs
  /// lists real disks only.
  private static String name(long device) {
    String numbers = (device >>> Integer.SIZE) + ":" + (int) device;
    Path link = Path.of("/sys/dev/block", numbers);
    try {
      return Files.isSymbolicLink(link)
          ? String.valueOf(Files.readSymbolicLink(link).getFileName())
          : numbers;
    } catch (IOException _) {
      return numbers;
    }
  }
}
