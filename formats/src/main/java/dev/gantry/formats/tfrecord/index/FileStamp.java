package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.TransferException;
import dev.gantry.formats.internal.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.TimeUnit;

/// By what a file is known to be the same as before. A change that keeps both goes unnoticed.
///
/// @param size in bytes
/// @param modified when, in nanoseconds since 1970
record FileStamp(long size, long modified) {
  /// @throws TransferException if there is no such file
  static FileStamp of(Path file) {
    try {
      BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
      return new FileStamp(
          attributes.size(), attributes.lastModifiedTime().to(TimeUnit.NANOSECONDS));
    } catch (IOException e) {
      throw FileErrors.of("stat", file.toString(), e);
    }
  }

  /// How a file differs that was `indexed` once, in words; empty where it does not.
  String changeSince(FileStamp indexed) {
    if (size != indexed.size) {
      return "the file has " + size + " bytes, and had " + indexed.size + " when it was indexed";
    }
    return modified == indexed.modified ? "" : "the file was modified after it was indexed";
  }
}
