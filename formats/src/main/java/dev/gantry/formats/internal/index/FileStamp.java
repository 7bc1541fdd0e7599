// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.SourceFile;
import java.nio.file.Path;

/// By what a file is known to be the same as before. A change that keeps both goes unnoticed.
///
/// @param size in bytes
/// @param modified when, in nanoseconds since 1970
record FileStamp(long size, long modified) {
  /// @throws TransferException if there is no such file
  static FileStamp of(Path file) {
    return of(SourceFile.Identity.look(file));
  }

  /// What of an identity outlives a copy that keeps times.
  static FileStamp of(SourceFile.Identity identity) {
    return new FileStamp(identity.size(), identity.modifiedNanos());
  }

  /// How a file differs that was `indexed` once, in words; empty where it does not.
  String changeSince(FileStamp indexed) {
    if (size != indexed.size) {
      return "the file has " + size + " bytes, and had " + indexed.size + " when it was indexed";
    }
    return modified == indexed.modified ? "" : "the file was modified after it was indexed";
  }
}
