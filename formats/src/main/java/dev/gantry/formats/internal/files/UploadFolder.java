// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A temporary folder for files that are to be uploaded. It is removed with all of its files when it is
/// closed or, if its process was killed, when any process makes the next one.
public final class UploadFolder implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(UploadFolder.class);

  private static final String PREFIX = "gantry-upload-";
  private static final String USER = "upload";
  private static final int MAX_TRIES = 10;

  private final Path path;

  /// Tells other processes that this one is alive.
  private final FolderLock lock;

  private UploadFolder(Path path, FolderLock lock) {
    this.path = path;
    this.lock = lock;
  }

  /// @throws TransferException if the folder cannot be made
  public static UploadFolder make() {
    Path parent = Path.of(System.getProperty("java.io.tmpdir", ""));
    try {
      for (int i = 1; ; i++) {
        Path path = Files.createTempDirectory(parent, PREFIX);
        try {
          UploadFolder made = new UploadFolder(path, FolderLock.take(path, USER));
          made.removeLeftovers();
          return made;
        } catch (MisuseException | TransferException e) {
          // Another upload may take this folder for a leftover and remove it before its lock is
          // held.
          if (i == MAX_TRIES) {
            throw e;
          }
          removeEmpty(path);
        }
      }
    } catch (IOException e) {
      throw FileErrors.of("create", parent.toString(), e);
    }
  }

  private static void removeEmpty(Path folder) throws IOException {
    try {
      Files.deleteIfExists(folder);
    } catch (DirectoryNotEmptyException _) {
      // The other upload removes it.
    }
  }

  /// Removes the folders of killed processes; a folder that cannot be removed stays.
  private void removeLeftovers() {
    try {
      for (Path folder : FolderEntries.of(path.resolveSibling(""))) {
        if (folder.getFileName().toString().startsWith(PREFIX) && isLeftover(folder)) {
          removeLeftover(folder);
        }
      }
    } catch (IOException | TransferException _) {
      // The leftovers stay.
    }
  }

  /// Whether a folder was left by a killed process. Only this user's folders count, since another user
  /// could replace one by a link. A folder without a lock file has just been made.
  private boolean isLeftover(Path folder) throws IOException {
    return Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
        && Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS).equals(Files.getOwner(path))
        && Files.isRegularFile(FolderLock.file(folder), LinkOption.NOFOLLOW_LINKS);
  }

  private static void removeLeftover(Path folder) {
    try (UploadFolder left = new UploadFolder(folder, FolderLock.take(folder, USER))) {
      LOG.info("{}: removed what an upload that was killed has left", left.path());
    } catch (MisuseException | TransferException _) {
      // Another process holds the lock, so the folder is in use.
    }
  }

  /// The folder's path.
  public Path path() {
    return path;
  }

  /// The path of a file in this folder.
  public Path file(String name) {
    return path.resolve(name);
  }

  @Override
  public void close() {
    try {
      for (Path file : FolderEntries.of(path)) {
        if (!file.equals(FolderLock.file(path))) {
          Files.delete(file);
        }
      }
      lock.remove();
      Files.delete(path);
    } catch (IOException e) {
      throw FileErrors.of("delete", path.toString(), e);
    }
  }
}
