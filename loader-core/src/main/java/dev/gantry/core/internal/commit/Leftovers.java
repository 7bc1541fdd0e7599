// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Removes the temporary files of writers that were killed. A writer holds a lock on its file as
/// long as the file has a temporary name, and the kernel frees the lock when the process ends in
/// any way. Therefore a temporary file whose lock is free has no writer any more. If the file
/// system has no locks, nothing is removed.
final class Leftovers {
  private static final Logger LOG = LoggerFactory.getLogger(Leftovers.class);

  /// How many folders this process remembers, so that it does not list a folder again for each file written to it.
  private static final int MAX_FOLDERS = 1000;

  private static final Set<Path> SEEN = ConcurrentHashMap.newKeySet();

  private Leftovers() {}

  /// Removes the files of killed writers from a folder, unless this process has searched the
  /// folder before. Errors are ignored, because the caller's own write reports a fault of the
  /// folder.
  static void remove(FileCalls calls, Path folder) {
    if (!SEEN.add(folder.toAbsolutePath().normalize())) {
      return;
    }
    if (SEEN.size() > MAX_FOLDERS) {
      SEEN.clear();
    }
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, TemporaryName::isHeld)) {
      for (Path file : files) {
        boolean _ = removeFile(calls, file);
      }
    } catch (IOException | DirectoryIteratorException _) {
      // The folder cannot be listed, so the files stay.
    }
  }

  /// Whether a living writer holds a file's lock.
  static boolean isBeingWritten(FileCalls calls, Path file) {
    int descriptor = FileCalls.retried(() -> calls.open(file, FileCalls.O_RDWR, 0));
    if (descriptor < 0) {
      return false;
    }
    boolean isHeld = calls.lock(descriptor, FileCalls.F_WRLCK, 0, 0) == -Errno.EAGAIN.code();
    int _ = calls.close(descriptor);
    return isHeld;
  }

  /// @return whether the file belonged to a killed writer and was removed
  static boolean removeFile(FileCalls calls, Path file) {
    if (!TemporaryName.isHeld(file) || !Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      return false;
    }
    long bytes = file.toFile().length();
    int descriptor = FileCalls.retried(() -> calls.open(file, FileCalls.O_RDWR, 0));
    if (descriptor < 0) {
      return false;
    }
    // If a living writer has made this file but not locked it yet, it finds the lock taken or the
    // name gone, and makes another file.
    boolean removed =
        calls.lock(descriptor, FileCalls.F_WRLCK, 0, 0) == 0 && calls.unlink(file) == 0;
    int _ = calls.close(descriptor);
    if (removed) {
      LOG.info("{}: removed {} bytes of a writer that was killed", file, bytes);
    }
    return removed;
  }
}
