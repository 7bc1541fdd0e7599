package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// What several readers have carried so far, and which way. Thread-safe.
final class Account {
  private final Map<Transport, Long> bytesByTransport = new EnumMap<>(Transport.class);
  private long bytes;
  private long directBytes;
  private long unknownBytes;
  private long reads;

  synchronized void add(Transport kind, long length, boolean direct, boolean unknown) {
    bytesByTransport.merge(kind, length, Long::sum);
    bytes += length;
    directBytes += direct ? length : 0;
    unknownBytes += unknown ? length : 0;
    reads++;
  }

  synchronized long bytes() {
    return bytes;
  }

  synchronized TransferReport report(List<TransferReport.FileReport> files, Duration elapsed) {
    return new TransferReport(bytesByTransport, directBytes, unknownBytes, reads, files, elapsed);
  }
}
