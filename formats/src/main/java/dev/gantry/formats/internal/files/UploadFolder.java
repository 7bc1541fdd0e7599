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

/// A temporary folder of files that are to be uploaded. It goes with all that is in it: when it is closed,
/// or when the next one is made after its process was killed.
public final class UploadFolder implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(UploadFolder.class);

  private static final String PREFIX = "gantry-upload-";
  private static final String USER = "upload";
  private static final int MOST_TRIES = 10;

  private final Path path;

  /// Tells other processes that this one is alive.
  private final FolderLock lock;

  private UploadFolder(Path path, FolderLock lock) {
    this.path = path;
    this.lock = lock;
  }

  /// @throws TransferException if it cannot be made
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
          // Another upload may take the folder for a leftover before its lock is held.
          if (i == MOST_TRIES) {
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

  /// What cannot be removed stays.
  private void removeLeftovers() {
    try {
      for (Path folder : FolderEntries.of(path.resolveSibling(""))) {
        if (folder.getFileName().toString().startsWith(PREFIX) && isLeftover(folder)) {
          removeLeftover(folder);
        }
      }
    } catch (IOException | TransferException _) {
      // They stay.
    }
  }

  /// Takes only this user's folders, since another user could put a link in the folder's place. A folder without a
  /// lock's file has just been made.
  private boolean isLeftover(Path folder) throws IOException {
    return Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
        && Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS).equals(Files.getOwner(path))
        && Files.isRegularFile(FolderLock.file(folder), LinkOption.NOFOLLOW_LINKS);
  }

  private static void removeLeftover(Path folder) {
    try (UploadFolder left = new UploadFolder(folder, FolderLock.take(folder, USER))) {
      LOG.info("{}: removed what an upload that was killed has left", left.path());
    } catch (MisuseException | TransferException _) {
      // It is in use.
    }
  }

  /// The folder's path.
  public Path path() {
    return path;
  }

  /// A file in this folder.
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
