// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.store.SourceFile.Identity;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// The files of a dataset as they were when it was opened: what is known of their bytes is true of
/// no others. For as long as the process runs; a copy of the files is another dataset's.
/// Thread-safe.
public final class KnownFiles {
  private final Map<Location, Object> known = new ConcurrentHashMap<>();
  private final String advice;

  /// @param advice what to do where a file has changed, for errors
  public KnownFiles(String advice) {
    this.advice = advice;
  }

  /// This is what the file must be from now on.
  public void expect(Location file, Object identity) {
    known.put(file, identity);
  }

  /// Compares a file that was opened; one of which nothing is known yet is known then.
  ///
  /// @throws MalformedFileException of kind `changed-meanwhile` where it is another
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
