// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.SourceFile.Identity;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.function.Function;

/// A file in the version that the driver saw when it planned a query. The planned offsets are
/// valid only for this version. Executors recognise the version by size and modification time,
/// because device and inode may differ between machines.
///
/// @param bytes the file's size
/// @param modifiedNanos when it was modified, in nanoseconds since 1970
public record PlannedFile(String name, long bytes, long modifiedNanos) implements Serializable {
  /// @throws TransferException if there is no such file
  public static PlannedFile of(Path file) {
    return of(file, Identity.look(file));
  }

  public static PlannedFile of(Path file, Identity seen) {
    return new PlannedFile(file.toAbsolutePath().toString(), seen.size(), seen.modifiedNanos());
  }

  /// Opens the file if it is still the planned version.
  ///
  /// @param opener opens the file, and throws if it does not exist
  /// @throws MalformedFileException of kind `changed-meanwhile` if the file has changed or is gone
  public <T> T open(Function<Path, T> opener, Consumer<T> closer) {
    Path file = Path.of(name);
    requireSame(file);
    T opened = opener.apply(file);
    // The version is checked again, because another file may have taken the name between the check
    // and the opening.
    return Cleanup.orUndo(
        () -> {
          requireSame(file);
          return opened;
        },
        () -> closer.accept(opened));
  }

  private void requireSame(Path file) {
    Identity now;
    try {
      now = Identity.look(file);
    } catch (TransferException e) {
      if (e.isNotFound()) {
        throw changed(file, "it is gone");
      }
      throw e;
    }
    if (now.size() != bytes || now.modifiedNanos() != modifiedNanos) {
      throw changed(file, "it was written anew");
    }
  }

  private static MalformedFileException changed(Path file, String how) {
    return new MalformedFileException(
        file,
        0,
        "changed-meanwhile",
        how + " since the query was planned; load the DataFrame again");
  }
}
