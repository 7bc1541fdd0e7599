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

/// A folder that something is to be written into, and those above it that were made for that. For
/// one thread.
public final class MadeFolders {
  /// What says that a folder cannot be synchronised by us, rather than that it failed.
  private static final Set<String> NOT_OURS = Set.of("EACCES", "EPERM", "EINVAL");

  private final Folders folders;

  /// The outermost first.
  private final List<Path> made = new ArrayList<>();

  private MadeFolders(Folders folders) {
    this.folders = folders;
  }

  /// Makes a folder where it is missing, and those above it, or changes nothing.
  ///
  /// @throws MisuseException if something else has its name
  /// @throws TransferException if one cannot be made
  public static MadeFolders make(Folders folders, Path folder) {
    MadeFolders all = new MadeFolders(folders);
    return Cleanup.orUndo(
        () -> {
          all.make(folder.toAbsolutePath().normalize());
          return all;
        },
        all::takeBack);
  }

  /// As [#make], for the folder that a file is to be in.
  public static MadeFolders makeFor(Folders folders, Path file) {
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
        throw new MisuseException(folder + " is there, but no folder; name another place");
      }
      // Another writer may have made it just now.
      folders.sync(parent);
    }
  }

  /// Also where the folder was there: a crash may have come before its entry was on the disk.
  private void makeLast(Path parent) {
    try {
      folders.sync(parent);
    } catch (TransferException e) {
      if (!e.isErrno(NOT_OURS)) {
        throw e;
      }
    }
  }

  /// Removes those that were made and in which nothing is.
  public void takeBack() {
    for (Path folder : made.reversed()) {
      if (FolderEntries.of(folder).isEmpty()) {
        folders.removeFolder(folder);
      }
    }
    made.clear();
  }
}
