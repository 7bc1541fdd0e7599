// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

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
  /// @param flags of `open`
  /// @param mode of a file that this makes
  /// @param shown its name in messages
  /// @throws TransferException if it cannot be opened, or is a directory
  public static RegularFile open(FileCalls calls, Path path, int flags, int mode, Path shown) {
    int descriptor = FileCalls.retried(() -> calls.open(path, flags, mode));
    if (descriptor < 0) {
      throw new TransferException("open", shown.toString(), Errno.failure(-descriptor));
    }
    FileCalls.StatResult stat = calls.stat(descriptor);
    if (stat.directory()) {
      int _ = calls.close(descriptor);
      throw FileErrors.isDirectory("open", shown.toString());
    }
    return new RegularFile(calls, path, descriptor, stat);
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
