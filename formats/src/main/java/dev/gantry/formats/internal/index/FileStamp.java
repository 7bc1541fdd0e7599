// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/// Identifies the state of a file, to find out whether it has changed since it was indexed. A
/// change that keeps size, time and version goes unnoticed.
///
/// @param size in bytes
/// @param modified the time of the last change, in nanoseconds since 1970; 0 if the store does not tell
/// @param version the version of a remote file; empty for a local file, or if the store has no versions
public record FileStamp(long size, long modified, String version) {
  /// @throws TransferException if there is no such file
  public static FileStamp of(Location file, GantrySession session) {
    return switch (file) {
      case Location.Local(var path, _) -> of(SourceFile.Identity.look(path));
      case Location.Remote _ -> {
        try (SourceFile opened = session.openFile(file)) {
          yield of(opened);
        }
      }
    };
  }

  /// Makes the stamp from the parts of an identity that a copy with the same times keeps.
  public static FileStamp of(SourceFile.Identity identity) {
    return new FileStamp(identity.size(), identity.modifiedNanos(), "");
  }

  /// The stamp of a remote file.
  public static FileStamp of(SourceFile file) {
    return new FileStamp(
        file.size(), file.modified().map(FileStamp::nanos).orElse(0L), file.version());
  }

  private static long nanos(Instant time) {
    return TimeUnit.SECONDS.toNanos(time.getEpochSecond()) + time.getNano();
  }

  /// Says in words how this file differs from the one that was `indexed`; empty if it does not.
  ///
  /// @param written when the remote index was written, if the store tells
  public String changeSince(FileStamp indexed, Optional<Instant> written) {
    if (size != indexed.size) {
      return "the file has " + size + " bytes, and had " + indexed.size + " when it was indexed";
    }
    boolean byTime = version.isEmpty() || indexed.version.isEmpty();
    if (byTime ? modified == indexed.modified : version.equals(indexed.version)) {
      return "";
    }
    if (indexed.version.isEmpty() && written.isPresent()) {
      // The index was made beside a local file and uploaded with that file or after it, so it is
      // not older
      // than the remote file.
      return nanos(written.get()) < modified ? "the file was written after its index" : "";
    }
    return "the file's %s is not the one that was indexed".formatted(byTime ? "time" : "version");
  }
}
