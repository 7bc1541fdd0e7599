// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Transport;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// The report of a write.
///
/// @param bytesByTransport how many bytes each transport wrote; transports that wrote none are
///     left out. `host` wrote the bytes that came from host memory or from other files
/// @param directBytes how many of these bytes went past the page cache
/// @param writes how many requests the write took
/// @param files a report for each file, in the order of the request
/// @param elapsed the time from opening the first file until all files are durable under their names
public record WriteReport(
    Map<Transport, Long> bytesByTransport,
    long directBytes,
    long writes,
    List<FileReport> files,
    Duration elapsed) {
  public WriteReport {
    bytesByTransport = Map.copyOf(bytesByTransport);
    files = List.copyOf(files);
  }

  /// The report on one file.
  ///
  /// @param size the file's size in bytes
  /// @param checksums the checksums of the file and its parts; empty if the options did not ask
  ///     for checksums
  /// @param reason the reason why the file was not written past the page cache, or not by a better
  ///     transport; empty if no better transport exists
  public record FileReport(Path file, long size, Optional<Checksums> checksums, String reason) {}

  /// The CRC32C checksums of a file and its parts.
  ///
  /// @param parts a checksum for each of [NewFile#parts], in order
  public record Checksums(int file, List<Integer> parts) {
    public Checksums {
      parts = List.copyOf(parts);
    }
  }

  /// Returns how many bytes all files have together.
  public long bytes() {
    return files.stream().mapToLong(FileReport::size).sum();
  }
}
