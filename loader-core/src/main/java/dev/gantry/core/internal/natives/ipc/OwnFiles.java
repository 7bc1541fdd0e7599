// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives.ipc;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/// Opens files that no other user can have written. Checksums cannot replace this check, since a
/// user who writes bytes can write their checksums, too.
public final class OwnFiles {
  /// The permissions of a file that only its owner may read and write.
  private static final int MODE = 0600;

  private OwnFiles() {}

  /// Opens a file as [FileCalls#open] does.
  ///
  /// @throws MisuseException if the name is a link, the file is another user's, or others may write to it
  /// @throws TransferException if the state of the file or folder cannot be read
  public static int open(FileCalls calls, Path file, int flags) {
    int descriptor = FileCalls.retried(() -> calls.open(file, flags | calls.noFollowFlag(), MODE));
    if (descriptor == -Errno.ELOOP.code()) {
      throw new MisuseException(file + " is a link, which is not followed here");
    }
    if (descriptor < 0) {
      return descriptor;
    }
    boolean own = false;
    try {
      require(calls, file, calls.stat(descriptor));
      own = true;
      return descriptor;
    } finally {
      if (!own) {
        int _ = calls.close(descriptor);
      }
    }
  }

  /// @throws MisuseException if a file or folder is another user's, or others may write to it
  /// @throws TransferException if the state of the file or folder cannot be read
  public static void require(FileCalls calls, Path path, FileCalls.StatResult stat) {
    Errno.check(stat.status(), "stat", path);
    // Systems whose users have no numbers have no file locks either, so processes share no files
    // there.
    boolean isOwn = calls.user() < 0 || stat.owner() == calls.user();
    if (!isOwn || stat.othersMayWrite()) {
      throw new MisuseException(
          path
              + " must belong to this process's user, and no other may write to it: what is there"
              + " is trusted (owner "
              + stat.owner()
              + ", mode "
              + Integer.toOctalString(stat.mode() & 0777)
              + ")");
    }
  }

  /// Writes a new file that no other user can read.
  public static void write(Path file, String text) throws IOException {
    Path made =
        Files.createFile(
            file,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Path _ = Files.writeString(made, text);
  }
}
