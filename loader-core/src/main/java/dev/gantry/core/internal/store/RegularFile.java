// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import java.nio.file.Path;

/// A local file that is open through the page cache, and may be opened past it, too.
///
/// @param path its name when it was opened
/// @param descriptor that goes through the page cache
/// @param stat of the open file; it may have failed
public record RegularFile(FileCalls calls, Path path, int descriptor, FileCalls.StatResult stat) {
  /// The encoding of the JVM's file names, which the locale decides.
  private static final String NAMES = System.getProperty("sun.jnu.encoding", "UTF-8");

  /// @param flags of `open`
  /// @param mode of a file that this makes
  /// @param shown its name in messages
  /// @throws TransferException if it cannot be opened, or is a directory
  /// @throws MalformedFileException of kind `not-a-regular-file` for a pipe, a socket or a device
  public static RegularFile open(FileCalls calls, Path path, int flags, int mode, Path shown) {
    int descriptor = FileCalls.retried(() -> calls.open(path, flags, mode));
    if (descriptor < 0) {
      throw failure(-descriptor, shown);
    }
    FileCalls.StatResult stat = calls.stat(descriptor);
    if (stat.status() < 0 || stat.regular()) {
      return new RegularFile(calls, path, descriptor, stat);
    }
    int _ = calls.close(descriptor);
    if (stat.directory()) {
      throw FileErrors.isDirectory("open", shown.toString());
    }
    throw notRegular(shown);
  }

  /// As [#open] for those who then open the file by the JDK, which waits for the other end of a pipe.
  public static void requireWritable(Path path) {
    FileCalls calls = FileCalls.ofPlatform();
    int _ = calls.close(open(calls, path, FileCalls.O_WRONLY, 0, path).descriptor());
  }

  private static GantryException failure(int errno, Path shown) {
    String name = shown.toString();
    if (errno == Errno.ENXIO.code()) {
      return notRegular(shown);
    }
    Failure.Errno failure = Errno.failure(errno);
    if (errno == Errno.ENOENT.code()
        && !NAMES.equals("UTF-8")
        && (name.indexOf('?') >= 0 || name.indexOf('\uFFFD') >= 0)) {
      // The JVM has put one of these for each byte of the name that it could not decode.
      String meaning =
          failure.meaning()
              + "; this JVM takes names as "
              + NAMES
              + ": set LC_ALL=C.UTF-8 for others";
      failure = new Failure.Errno(errno, failure.name(), meaning);
    }
    return new TransferException("open", name, failure);
  }

  private static MalformedFileException notRegular(Path shown) {
    return new MalformedFileException(shown, 0, "not-a-regular-file", "a pipe, socket or device");
  }

  /// Opens the same file past the page cache.
  ///
  /// @param flags of `open`, but for the one that says so
  /// @return the descriptor, or the negated `errno`; `ESTALE` if another file has the name by now
  public int openDirect(int flags) {
    int direct = FileCalls.retried(() -> calls.open(path, flags | calls.directFlag(), 0));
    if (direct >= 0 && stat.status() >= 0 && !stat.isSameFile(calls.stat(direct))) {
      int _ = calls.close(direct);
      return -Errno.ESTALE.code();
    }
    return direct;
  }
}
