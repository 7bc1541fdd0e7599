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
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Removes the temporary files of writers that were killed. A writer holds the lock of its file as long
/// as the file is temporary, and the kernel takes the lock back when the process ends, however it ends. So
/// a file whose lock is free is nobody's. Where the file system has no locks, nothing is removed.
final class Leftovers {
  private static final Logger LOG = LoggerFactory.getLogger(Leftovers.class);

  /// Folders that this process remembers, so that many files in one do not list it each.
  private static final int MAX_FOLDERS = 1000;

  private static final Set<Path> SEEN =
      Collections.synchronizedSet(
          Collections.newSetFromMap(
              new LinkedHashMap<>() {
                private static final long serialVersionUID = 1;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Path, Boolean> eldest) {
                  return size() > MAX_FOLDERS;
                }
              }));

  private Leftovers() {}

  /// Looks through a folder that this process has not looked through before. What cannot be removed stays:
  /// the caller's own writing says what is wrong with the folder.
  static void remove(FileCalls calls, Path folder) {
    if (!SEEN.add(folder.toAbsolutePath().normalize())) {
      return;
    }
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, TemporaryName::isHeld)) {
      for (Path file : files) {
        boolean _ = removeFile(calls, file);
      }
    } catch (IOException | DirectoryIteratorException _) {
      // The files stay.
    }
  }

  /// Whether a living writer holds a file.
  static boolean isBeingWritten(FileCalls calls, Path file) {
    int descriptor = FileCalls.retried(() -> calls.open(file, FileCalls.O_RDWR, 0));
    if (descriptor < 0) {
      return false;
    }
    boolean isHeld = calls.lock(descriptor, FileCalls.F_WRLCK, 0, 0) == -Errno.EAGAIN.code();
    int _ = calls.close(descriptor);
    return isHeld;
  }

  /// @return whether it was a file of a writer that was killed
  static boolean removeFile(FileCalls calls, Path file) {
    if (!TemporaryName.isHeld(file) || !Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      return false;
    }
    long bytes = file.toFile().length();
    int descriptor = FileCalls.retried(() -> calls.open(file, FileCalls.O_RDWR, 0));
    if (descriptor < 0) {
      return false;
    }
    // Its writer, should it have just made the file, sees the lock taken, or the name gone.
    boolean removed =
        calls.lock(descriptor, FileCalls.F_WRLCK, 0, 0) == 0 && calls.unlink(file) == 0;
    int _ = calls.close(descriptor);
    if (removed) {
      LOG.info("{}: removed {} bytes of a writer that was killed", file, bytes);
    }
    return removed;
  }
}
