// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.store.SourceFile.Identity;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Remembers the identities of a dataset's files as they were when it was opened, and refuses files that
/// have changed since. It compares within one process only. Thread-safe.
public final class KnownFiles {
  private final Map<Location, Object> known = new ConcurrentHashMap<>();
  private final String advice;

  /// @param advice says in an error what to do if a file has changed
  public KnownFiles(String advice) {
    this.advice = advice;
  }

  /// Sets the identity that a file must have from now on.
  public void expect(Location file, Object identity) {
    known.put(file, identity);
  }

  /// Compares an opened file's identity with the known one. If no identity of the file is known,
  /// this one is kept.
  ///
  /// @throws MalformedFileException of kind `changed-meanwhile` if the identity differs
  public void check(Location file, Object opened) {
    Object before = known.putIfAbsent(file, opened);
    if (before != null && !before.equals(opened)) {
      throw new MalformedFileException(
          file, 0, "changed-meanwhile", difference(before, opened) + "; " + advice);
    }
  }

  private static String difference(Object before, Object now) {
    if (!(before instanceof Identity was && now instanceof Identity is)) {
      return "it was " + before + " when it was opened, and is " + now;
    }
    if (is.size() != was.size()) {
      return "it has " + is.size() + " bytes, and had " + was.size() + " when it was opened";
    }
    return is.device() == was.device() && is.inode() == was.inode()
        ? "it was modified since the dataset was opened"
        : "another file has taken its place since the dataset was opened";
  }
}
