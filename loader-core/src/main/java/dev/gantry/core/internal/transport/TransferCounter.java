// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// Counts what the threads of a transfer carry, by transport. Thread-safe.
public final class TransferCounter {
  private final Map<Transport, Long> bytesByTransport = new EnumMap<>(Transport.class);
  private long bytes;
  private long directBytes;
  private long unknownBytes;
  private long reads;

  /// @param direct whether the bytes went past the page cache
  /// @param unknown whether the kernel did not say if they were in it
  public synchronized void add(Transport transport, long length, boolean direct, boolean unknown) {
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

  synchronized TransferReport report(List<TransferReport.FileReport> files, Duration elapsed) {
    return new TransferReport(bytesByTransport, directBytes, unknownBytes, reads, files, elapsed);
  }
}
