// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.memory.Cleanup;
import java.nio.file.Path;

/// A folder that one writer of all processes holds by a lock while it writes. Not thread-safe.
public final class OutputFolder {
  private final MadeFolders made;
  private final FolderLock lock;

  private OutputFolder(MadeFolders made, FolderLock lock) {
    this.made = made;
    this.lock = lock;
  }

  /// Makes the folder and its missing parents, and takes the folder's lock.
  ///
  /// @param writer what errors call a writer of such a folder
  /// @throws MisuseException if another writer holds the folder, or a file has the folder's name
  /// @throws TransferException if the folder cannot be made, or no file can be made in it
  public static OutputFolder take(Folders folders, Path folder, String writer) {
    return take(folders, folder, FolderLock.FILE_NAME, writer);
  }

  /// Takes a folder as [#take(Folders, Path, String)] does, for one of several writers that touch different
  /// files.
  ///
  /// @param lock the name of this writer's lock file
  static OutputFolder take(Folders folders, Path folder, String lock, String writer) {
    MadeFolders made = MadeFolders.make(folders, folder);
    return Cleanup.orUndo(
        () -> new OutputFolder(made, FolderLock.take(folder, lock, writer)), made::takeBack);
  }

  /// Lets other writers take the folder.
  public void release() {
    lock.remove();
  }

  /// Runs `removal`, which removes the writer's files. Afterwards, even if `removal` fails, this
  /// lets other writers take the folder, and removes the empty folders that were made for this
  /// writer.
  public void takeBack(Runnable removal) {
    try {
      removal.run();
    } finally {
      lock.remove();
    }
    made.takeBack();
  }
}
