// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.TransferReport.DeviceReport;
import dev.gantry.core.Transport;
import dev.gantry.core.spi.Residency;
import java.time.Duration;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Counts the bytes that the threads of a transfer move, by transport. Thread-safe.
public final class TransferCounter {
  private final SessionCounters session;
  private final Map<Transport, Long> bytesByTransport = new EnumMap<>(Transport.class);
  private final Map<Device, Long> passed = new LinkedHashMap<>();
  private long bytes;
  private long directBytes;
  private long unknownBytes;
  private long reads;

  /// @param session the counters of all transfers of the session, which are increased, too
  public TransferCounter(SessionCounters session) {
    this.session = session;
  }

  /// @param direct whether the bytes went past the page cache
  /// @param residency where the bytes were before they were read
  public void addRead(Transport transport, long length, boolean direct, Residency residency) {
    add(transport, length, direct, residency == Residency.UNKNOWN);
    session.addRead(transport, length, residency);
  }

  /// @param direct whether the bytes went past the page cache
  public void addWritten(Transport transport, long length, boolean direct) {
    add(transport, length, direct, false);
    session.addWritten(transport, length);
  }

  /// The speeds at which the session's disks served reads.
  public DiskSpeeds disks() {
    return session.disks();
  }

  /// Counts a file whose transport had to be changed.
  public void addFallback() {
    session.addFallback();
  }

  /// Counts bytes that were copied to a device from another device, after cuFile had read them
  /// once.
  public synchronized void addPassed(Device to, long length) {
    passed.merge(to, length, Long::sum);
  }

  private synchronized void add(Transport transport, long length, boolean direct, boolean unknown) {
    bytesByTransport.merge(transport, length, Long::sum);
    bytes += length;
    directBytes += direct ? length : 0;
    unknownBytes += unknown ? length : 0;
    reads++;
  }

  public synchronized long bytes() {
    return bytes;
  }

  public synchronized long directBytes() {
    return directBytes;
  }

  public synchronized Map<Transport, Long> bytesByTransport() {
    return Map.copyOf(bytesByTransport);
  }

  /// @return the report; its devices are the devices that [#addPassed] counted bytes for
  public synchronized TransferReport report(
      int readers, List<TransferReport.FileReport> files, Duration elapsed) {
    return new TransferReport(
        bytesByTransport,
        directBytes,
        unknownBytes,
        reads,
        readers,
        files,
        passed.entrySet().stream()
            .map(one -> new DeviceReport(one.getKey(), 0, one.getValue(), ""))
            .toList(),
        elapsed);
  }
}
