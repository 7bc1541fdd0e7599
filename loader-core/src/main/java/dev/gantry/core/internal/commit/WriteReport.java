// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Transport;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// What a write did.
///
/// @param bytesByTransport bytes of the files by each transport that carried any: `host` for what came from
///     host memory or from other files
/// @param directBytes of these, the bytes that went past the page cache
/// @param writes how many requests it took
/// @param files one for each file, in the order of the request
/// @param elapsed from opening the first file until all are durable under their names
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

  /// @param size in bytes
  /// @param checksums of the file and its parts, if they were wanted
  /// @param reason why it was not written past the page cache, or not by a better transport; empty where
  ///     there is nothing better
  public record FileReport(Path file, long size, Optional<Checksums> checksums, String reason) {}

  /// CRC32C checksums.
  ///
  /// @param parts one a part of [NewFile#parts], in order
  public record Checksums(int file, List<Integer> parts) {
    public Checksums {
      parts = List.copyOf(parts);
    }
  }

  /// Bytes of all files together.
  public long bytes() {
    return files.stream().mapToLong(FileReport::size).sum();
  }
}
