// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.memory.Cleanup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/// Makes a folder and its missing parents, and can remove the folders that it made. Not
/// thread-safe.
public final class MadeFolders {
  /// The errors of `fsync` that mean that this user may not synchronise a folder; all other
  /// errors mean that the disk failed.
  private static final Set<String> NOT_OURS = Set.of("EACCES", "EPERM", "EINVAL");

  private final Folders folders;

  /// The folders that were made, the outermost first.
  private final List<Path> made = new ArrayList<>();

  private MadeFolders(Folders folders) {
    this.folders = folders;
  }

  /// Makes a folder and its missing parents. After a failure, none of the folders that this made
  /// is left.
  ///
  /// @throws MisuseException if a file has the folder's name, or [Folders#requireMakeable] refuses it
  /// @throws TransferException if a folder cannot be made
  public static MadeFolders make(Folders folders, Path folder) {
    Folders.requireMakeable(folder);
    MadeFolders all = new MadeFolders(folders);
    return Cleanup.orUndo(
        () -> {
          all.make(folder.toAbsolutePath().normalize());
          return all;
        },
        all::takeBack);
  }

  /// Makes the folder of a file, as [#make] does.
  public static MadeFolders makeFor(Folders folders, Path file) {
    Folders.requireMakeable(file);
    return make(folders, file.resolveSibling(""));
  }

  private void make(Path folder) {
    Path parent = folder.getParent();
    if (parent == null) {
      return;
    }
    if (Files.isDirectory(folder)) {
      makeLast(parent);
      return;
    }
    make(parent);
    try {
      folders.create(folder);
      made.add(folder);
    } catch (TransferException e) {
      if (!e.isErrno(Set.of("EEXIST"))) {
        throw e;
      }
      if (!Files.isDirectory(folder)) {
        throw new MisuseException(folder + " exists and is not a folder; name another path");
      }
      // Another writer may have made the folder just now.
      folders.sync(parent);
    }
  }

  /// Synchronises the last folder's parent, even if the folder existed: after an earlier crash,
  /// the folder's entry may not be on the disk yet.
  private void makeLast(Path parent) {
    try {
      folders.sync(parent);
    } catch (TransferException e) {
      if (!e.isErrno(NOT_OURS)) {
        throw e;
      }
    }
  }

  /// Removes those folders that this made and that are empty.
  public void takeBack() {
    for (Path folder : made.reversed()) {
      if (FolderEntries.of(folder).isEmpty()) {
        folders.removeFolder(folder);
      }
    }
    made.clear();
  }
}
