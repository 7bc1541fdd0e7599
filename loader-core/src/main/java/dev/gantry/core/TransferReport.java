// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The result of a transfer.
///
/// @param bytesByTransport bytes read by each transport that carried any, blocks at the edges included
/// @param directBytes the number of these bytes that went past the page cache
/// @param unknownBytes the number of bytes for which the kernel could not tell whether they were
///     in the page cache; such bytes were read as if they were not in the page cache
/// @param reads the number of read requests
/// @param readers the number of threads that read, or wrote, at the end. In a load onto a GPU,
///     further readers join while the GPU waits for bytes, and the session's next load begins with
///     this number of readers. For several transfers together, this is the largest of their
///     numbers
/// @param files one entry for each file
/// @param devices one entry for each device of a load onto several devices; otherwise empty
/// @param elapsed the time from the readers' start to the last byte's arrival, without opening files and
///     allocating memory
public record TransferReport(
    Map<Transport, Long> bytesByTransport,
    long directBytes,
    long unknownBytes,
    long reads,
    int readers,
    List<FileReport> files,
    List<DeviceReport> devices,
    Duration elapsed) {

  /// The report of a transfer of no bytes.
  public static final TransferReport NOTHING =
      new TransferReport(Map.of(), 0, 0, 0, 0, List.of(), List.of(), Duration.ZERO);

  public TransferReport {
    bytesByTransport = Map.copyOf(bytesByTransport);
    files = List.copyOf(files);
    devices = List.copyOf(devices);
  }

  /// The report of a load onto one device.
  public TransferReport(
      Map<Transport, Long> bytesByTransport,
      long directBytes,
      long unknownBytes,
      long reads,
      int readers,
      List<FileReport> files,
      Duration elapsed) {
    this(bytesByTransport, directBytes, unknownBytes, reads, readers, files, List.of(), elapsed);
  }

  /// How a load's bytes got to one of its devices.
  ///
  /// @param fromHostBytes bytes that were copied to the device from the host, or that a disk wrote
  ///     to the device past the CPU
  /// @param fromDevicesBytes bytes that were copied to the device from other devices
  /// @param reason why bytes that another device had were copied from the host instead; empty if
  ///     there were no such bytes
  public record DeviceReport(
      Device device, long fromHostBytes, long fromDevicesBytes, String reason) {
    private DeviceReport plus(DeviceReport next) {
      return new DeviceReport(
          device,
          fromHostBytes + next.fromHostBytes,
          fromDevicesBytes + next.fromDevicesBytes,
          reason.isEmpty() ? next.reason : reason);
    }
  }

  /// @param transport the transport of the bytes that were not in the page cache, or of all bytes
  ///     if all were in the page cache
  /// @param reason why no better transport was used; empty if this transport is the best
  /// @param cached whether a remote file was read wholly from the cache on this machine's disk
  public record FileReport(Location file, Transport transport, String reason, boolean cached) {
    /// The report of a file that is not read from the cache of remote files.
    public FileReport(Location file, Transport transport, String reason) {
      this(file, transport, reason, false);
    }
  }

  /// Returns one report of this transfer and of a transfer that came after it.
  public TransferReport plus(TransferReport next) {
    Map<Transport, Long> sums = new HashMap<>(bytesByTransport);
    next.bytesByTransport.forEach((transport, bytes) -> sums.merge(transport, bytes, Long::sum));
    Set<FileReport> all = new LinkedHashSet<>(files);
    all.addAll(next.files);
    Map<Device, DeviceReport> each = new LinkedHashMap<>();
    devices.forEach(one -> each.merge(one.device(), one, DeviceReport::plus));
    next.devices.forEach(one -> each.merge(one.device(), one, DeviceReport::plus));
    return new TransferReport(
        sums,
        directBytes + next.directBytes,
        unknownBytes + next.unknownBytes,
        reads + next.reads,
        Math.max(readers, next.readers),
        List.copyOf(all),
        List.copyOf(each.values()),
        elapsed.plus(next.elapsed));
  }

  /// Returns this report with another elapsed time.
  public TransferReport withElapsed(Duration time) {
    return new TransferReport(
        bytesByTransport, directBytes, unknownBytes, reads, readers, files, devices, time);
  }

  /// Returns this report with the reports of several devices.
  public TransferReport withDevices(List<DeviceReport> each) {
    return new TransferReport(
        bytesByTransport, directBytes, unknownBytes, reads, readers, files, each, elapsed);
  }

  /// Bytes of all transports together.
  public long bytes() {
    return bytesByTransport.values().stream().mapToLong(Long::longValue).sum();
  }

  /// Bytes that `transport` carried.
  public long bytes(Transport transport) {
    return bytesByTransport.getOrDefault(transport, 0L);
  }

  /// The rate in units of 10⁹ bytes a second.
  public double gigabytesPerSecond() {
    return (double) bytes() / Math.max(1, elapsed.toNanos());
  }
}
