// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.MadeFolders;
import dev.gantry.formats.internal.files.OutputFolder;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/// Writes the files of new weights, and refuses folders where other files could be mixed up with them.
///
/// @param files the files in the order in which they get their names
record SafetensorsOutput(GantrySession session, List<NewFile> files, WriteOptions options) {
  /// Why a folder is refused for one more file, for [#requireNone].
  static final String HAS_INDEX = "has an index, which readers would follow";

  /// Writes a single file; its folder may hold other files.
  WriteReport writeFile(Path file) {
    MadeFolders made = MadeFolders.makeFor(session.folders(), file);
    return Cleanup.orUndo(
        () -> {
          Path folder = Objects.requireNonNullElse(file.getParent(), Path.of("."));
          requireNone(folder, SafetensorsOpener.INDEX_SUFFIX, HAS_INDEX);
          return session.write(files, options);
        },
        made::takeBack);
  }

  /// Writes files into a folder that has no other safetensors files.
  WriteReport writeInto(Path folder) {
    OutputFolder output = OutputFolder.take(session.folders(), folder, "writer of weights");
    Cleanup.orUndo(() -> requireEmpty(folder), () -> output.takeBack(() -> {}));
    WriteReport report =
        Cleanup.orUndo(
            () -> session.write(files, options), () -> output.takeBack(this::removeFiles));
    output.release();
    return report;
  }

  private void requireEmpty(Path folder) {
    String reason = "holds weights already";
    requireNone(folder, SafetensorsOpener.FILE_SUFFIX, reason);
    requireNone(folder, SafetensorsOpener.INDEX_SUFFIX, reason);
    files.forEach(SafetensorsOutput::requireFree);
  }

  private void requireNone(Path folder, String suffix, String reason) {
    List<Location> there =
        Folder.at(session, Location.of(folder)).map(Folder::files).orElse(List.of());
    requireNone(folder, suffix, there.stream().map(Location::fileName).toList(), reason);
  }

  /// @param names the names of the files in a folder
  static void requireNone(Object folder, String suffix, List<String> names, String reason) {
    names.stream()
        .filter(name -> name.endsWith(suffix))
        .findFirst()
        .ifPresent(found -> {
          throw new MisuseException(folder + " " + reason + ": " + found + "; name another place");
        });
  }

  /// Requires that no file, folder or link has a new file's name.
  private static void requireFree(NewFile file) {
    if (Files.exists(file.file(), LinkOption.NOFOLLOW_LINKS)) {
      throw new MisuseException(file.file() + " is there, but no file; name another place");
    }
  }

  /// Removes the files after a failure; before the write, nothing had these names. The index is
  /// removed last, since it was written first.
  private void removeFiles() {
    files.reversed().forEach(file -> session.folders().removeFile(file.file()));
  }
}
