// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/// The marks by which a file is known to be the same as before. A change that keeps all of it goes unnoticed.
///
/// @param size in bytes
/// @param modified when, in nanoseconds since 1970; 0 where the store does not tell
/// @param version of a remote file; empty for a local one, or where the store has none
record FileStamp(long size, long modified, String version) {
  /// @throws TransferException if there is no such file
  static FileStamp of(Location file, GantrySession session) {
    return switch (file) {
      case Location.Local(var path, _) -> of(SourceFile.Identity.look(path));
      case Location.Remote _ -> {
        try (SourceFile opened = session.openFile(file)) {
          yield of(opened);
        }
      }
    };
  }

  /// What of an identity outlives a copy that keeps times.
  static FileStamp of(SourceFile.Identity identity) {
    return new FileStamp(identity.size(), identity.modifiedNanos(), "");
  }

  /// The stamp of a remote file.
  static FileStamp of(SourceFile file) {
    return new FileStamp(
        file.size(), file.modified().map(FileStamp::nanos).orElse(0L), file.version());
  }

  private static long nanos(Instant time) {
    return TimeUnit.SECONDS.toNanos(time.getEpochSecond()) + time.getNano();
  }

  /// How a file differs that was `indexed` once, in words; empty where it does not.
  ///
  /// @param written when a remote index was, if the store tells
  String changeSince(FileStamp indexed, Optional<Instant> written) {
    if (size != indexed.size) {
      return "the file has " + size + " bytes, and had " + indexed.size + " when it was indexed";
    }
    boolean same =
        (version.isEmpty() || indexed.version.isEmpty())
            ? modified == indexed.modified
            : version.equals(indexed.version);
    if (same) {
      return "";
    }
    if (indexed.version.isEmpty() && written.isPresent()) {
      // The index is a copy of one that lay beside a
      // local file. It came with the file, or after it.
      return nanos(written.get()) < modified ? "the file was written after its index" : "";
    }
    return "the file was modified after it was indexed";
  }
}
