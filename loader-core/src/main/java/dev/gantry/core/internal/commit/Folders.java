package dev.gantry.core.internal.commit;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import java.nio.file.Path;

/// What is done to folders' entries, so that it lasts: an entry that is made, renamed or removed is
/// only on the disk when its folder was synchronised. Thread-safe.
public final class Folders {
  private static final int ENOENT = 2;

  /// All rights for all, less the umask.
  private static final int MODE = 0777;

  private final FileCalls calls;

  public Folders(FileCalls calls) {
    this.calls = calls;
  }

  /// Makes one folder, and returns when it is on the disk.
  ///
  /// @throws TransferException if that cannot be, and nothing has changed then; or it is there
  ///     already
  public void create(Path folder) {
    check("mkdir", folder, calls.mkdir(folder, MODE));
    try {
      sync(parent(folder));
    } catch (TransferException failure) {
      try {
        removeFolder(folder);
      } catch (TransferException besides) {
        failure.addSuppressed(besides);
      }
      throw failure;
    }
  }

  /// Gives a file another name of the same file system, and replaces what had it; durable only
  /// after [#sync].
  public void rename(Path from, Path to) {
    int result = calls.rename(from, to);
    if (result < 0) {
      throw new TransferException("rename", from + " to " + to, Errno.failure(-result));
    }
  }

  /// Removes a file, or does nothing where it is gone; durable only after [#sync].
  public void removeFile(Path file) {
    int result = calls.unlink(file);
    if (result != -ENOENT) {
      check("unlink", file, result);
    }
  }

  /// Removes an empty folder, or does nothing where it is gone; durable only after [#sync] of its
  /// parent.
  public void removeFolder(Path folder) {
    int result = calls.rmdir(folder);
    if (result != -ENOENT) {
      check("rmdir", folder, result);
    }
  }

  /// Returns when all of a folder's entries are on the disk as they are now. Not retried when it
  /// fails: what did not reach the disk is not known then.
  public void sync(Path folder) {
    int descriptor = FileCalls.retried(() -> calls.open(folder, FileCalls.O_RDONLY, 0));
    check("open", folder, descriptor);
    int result = calls.fsync(descriptor);
    // Read-only: nothing that a failing close could lose.
    calls.close(descriptor);
    check("fsync", folder, result);
  }

  /// The folder that a path is an entry of.
  static Path parent(Path path) {
    Path parent = path.getParent();
    return parent == null ? Path.of(".") : parent;
  }

  private static void check(String operation, Path path, int result) {
    if (result < 0) {
      throw new TransferException(operation, path.toString(), Errno.failure(-result));
    }
  }
}
