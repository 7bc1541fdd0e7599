// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.memory.Cleanup;
import java.nio.file.Path;

/// A folder that one writer of all processes has for itself until it is done. For one thread.
public final class OutputFolder {
  private final MadeFolders made;
  private final FolderLock lock;

  private OutputFolder(MadeFolders made, FolderLock lock) {
    this.made = made;
    this.lock = lock;
  }

  /// Makes the folder where it is missing, and those above it, and takes it.
  ///
  /// @param writer what writers of such folders are called, for errors
  /// @throws MisuseException if another writer has it, or something else has its name
  /// @throws TransferException if it cannot be made, or takes no file
  public static OutputFolder take(Folders folders, Path folder, String writer) {
    return take(folders, folder, FolderLock.FILE_NAME, writer);
  }

  /// As [#take(Folders, Path, String)], of one of several writers that do not meet each other's files.
  ///
  /// @param lock the name of its lock's file
  static OutputFolder take(Folders folders, Path folder, String lock, String writer) {
    MadeFolders made = MadeFolders.make(folders, folder);
    return Cleanup.orUndo(
        () -> new OutputFolder(made, FolderLock.take(folder, lock, writer)), made::takeBack);
  }

  /// Lets others have it.
  public void release() {
    lock.remove();
  }

  /// Runs what removes the writer's files, then lets others have the folder, also where that fails,
  /// and removes those folders that were made for it and in which nothing is.
  public void takeBack(Runnable removal) {
    try {
      removal.run();
    } finally {
      lock.remove();
    }
    made.takeBack();
  }
}
