// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/// Lists the entries of a local folder.
public final class FolderEntries {
  private FolderEntries() {}

  /// Lists a folder's entries in no particular order; an empty list if the folder does not exist.
  ///
  /// @throws TransferException if the folder cannot be read
  public static List<Path> of(Path folder) {
    List<Path> entries = new ArrayList<>();
    try (DirectoryStream<Path> stream = Files.newDirectoryStream(folder)) {
      stream.forEach(entries::add);
    } catch (NoSuchFileException | NotDirectoryException _) {
      return List.of();
    } catch (DirectoryIteratorException e) {
      throw FileErrors.of("list", folder.toString(), Objects.requireNonNull(e.getCause()));
    } catch (IOException e) {
      throw FileErrors.of("list", folder.toString(), e);
    }
    return entries;
  }
}
