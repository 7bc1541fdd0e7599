// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// What the disks gave to a session's reads past the page cache, by disk: how fast they are, and how many
/// requests at once they need for that. Thread-safe.
public final class DiskSpeeds {
  /// The calls of smaller requests take more time than their bytes.
  public static final long LEAST_BYTES = 256 << 10;

  private final Map<Long, Watch> disks = new TreeMap<>();

  /// The watch of one disk; guarded by the map's owner.
  private static final class Watch {
    private int underWay;
    private long busySince;
    private long busyNanos;
    private long requests;
    private long bytes;
    private long requestNanos;
    private double mostOfOne;
  }

  /// One disk, in all reads so far.
  ///
  /// @param name of the disk, or the numbers of its device
  /// @param requests that came past the page cache, of [#LEAST_BYTES] or more
  /// @param bytes that these brought
  /// @param busyNanos while any of them was under way
  /// @param requestNanos of all of them together
  /// @param mostOfOne the most bytes a second that one of them reached by itself
  public record Disk(
      String name, long requests, long bytes, long busyNanos, long requestNanos, double mostOfOne) {
    /// Bytes a second.
    public double bandwidth() {
      return bytes * 1e9 / Math.max(1, busyNanos);
    }

    /// How long a request takes, in seconds.
    public double latency() {
      return requestNanos / 1e9 / Math.max(1, requests);
    }

    /// How many requests were under way at once, on average.
    public double underWay() {
      return (double) requestNanos / Math.max(1, busyNanos);
    }

    /// How many at once would reach the bandwidth: bandwidth × latency / size, by the latency of the
    /// fastest request, which waited for the fewest others.
    public int depth() {
      return (int) Math.max(1, Math.ceil(bandwidth() / Math.max(1, mostOfOne)));
    }
  }

  /// A request of [#LEAST_BYTES] or more begins.
  ///
  /// @param device the number of the file's device
  public void begin(long device, long nanos) {
    synchronized (disks) {
      Watch disk = disks.computeIfAbsent(device, _ -> new Watch());
      if (disk.underWay++ == 0) {
        disk.busySince = nanos;
      }
    }
  }

  /// A request ends.
  ///
  /// @param begun when it began
  /// @param bytes that came past the page cache; 0 if they came another way, or not at all
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

  /// Those that were read from.
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

  /// As sysfs has it, which knows real disks only.
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
