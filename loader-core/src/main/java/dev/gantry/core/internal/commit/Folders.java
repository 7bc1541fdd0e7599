// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.FileNames;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;

/// Changes entries of folders durably. An entry that was created, renamed or removed is on the disk only after
/// its folder was synchronised. Thread-safe.
public final class Folders {

  /// The mode of new folders: all rights for everyone, less the umask.
  private static final int MODE = 0777;

  private final FileCalls calls;

  public Folders(FileCalls calls) {
    this.calls = calls;
  }

  /// Refuses a path whose missing folders nobody wants: `~`, which no shell has expanded, and the
  /// folders `s3:` and `bucket` of `Path.of("s3://bucket/run")`.
  ///
  /// @param path a folder, or a file whose folder is to be made
  public static void requireMakeable(Path path) {
    for (Path each = path; each != null && Files.notExists(each); each = each.getParent()) {
      if (each.endsWith("~") || FileNames.isUrl(each.toString())) {
        throw new MisuseException(
            path + ": there is no such folder" + FileNames.whyMissing(path.toString()));
      }
    }
  }

  /// Makes a missing folder that only this user may use, and the missing folders above it.
  ///
  /// @throws MisuseException if [#requireMakeable] refuses the folder
  /// @throws TransferException if a folder cannot be made
  public static void makePrivate(Path folder) {
    if (Files.isDirectory(folder)) {
      return;
    }
    requireMakeable(folder);
    boolean posix = folder.getFileSystem().supportedFileAttributeViews().contains("posix");
    FileAttribute<?>[] none = {};
    FileAttribute<?>[] onlyOwner = {
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
    };
    try {
      Path _ = Files.createDirectories(folder, posix ? onlyOwner : none);
    } catch (IOException e) {
      throw FileErrors.of("mkdir", folder.toString(), e);
    }
  }

  /// Creates one folder, and returns when the folder is on the disk.
  ///
  /// @throws TransferException if the folder cannot be created, or exists already; nothing has changed then
  public void create(Path folder) {
    Errno.check(calls.mkdir(folder, MODE), "mkdir", folder);
    Cleanup.orUndo(() -> sync(parent(folder)), () -> removeFolder(folder));
  }

  /// Renames a file within a file system, replacing a file of the new name. The change is durable only after [#sync].
  public void rename(Path from, Path to) {
    TimedEvent event = TimedEvent.begun(EventKind.COMMIT);
    int result = calls.rename(from, to);
    event.done("rename", to);
    Errno.check(result, "rename", from + " to " + to);
  }

  /// Removes a file, or does nothing if it is gone. The change is durable only after [#sync].
  public void removeFile(Path file) {
    Errno.check(calls.unlink(file), Errno.ENOENT, "unlink", file);
  }

  /// Removes the temporary file of a writer that was killed. The change is durable only after
  /// [#sync]. The file of a living writer is kept, and so is a file whose writer never held a
  /// lock.
  ///
  /// @return whether the file was removed
  public boolean removeLeftover(Path file) {
    return Leftovers.removeFile(calls, file);
  }

  /// Whether a living writer holds the lock of a temporary file; false if the file system has no
  /// locks.
  public boolean isBeingWritten(Path file) {
    return TemporaryName.isHeld(file) && Leftovers.isBeingWritten(calls, file);
  }

  /// Removes an empty folder, or does nothing if it is gone. The change is durable only after [#sync] of its parent.
  public void removeFolder(Path folder) {
    Errno.check(calls.rmdir(folder), Errno.ENOENT, "rmdir", folder);
  }

  /// Returns when all of a folder's entries are on the disk as they are now. A failed `fsync` is
  /// not repeated, since a repeated call may report success for entries that did not reach the
  /// disk.
  public void sync(Path folder) {
    int opened = FileCalls.retried(() -> calls.open(folder, FileCalls.O_RDONLY, 0));
    int descriptor = Errno.require(opened, "open", folder);
    try {
      TimedEvent event = TimedEvent.begun(EventKind.COMMIT);
      int result = calls.fsync(descriptor);
      event.done("synchronise folder", folder);
      Errno.check(result, "fsync", folder);
    } finally {
      // The folder was opened only for reading, so a failing close loses nothing.
      calls.close(descriptor);
    }
  }

  /// Returns the folder that holds a path.
  static Path parent(Path path) {
    Path parent = path.getParent();
    return parent == null ? Path.of(".") : parent;
  }
}
