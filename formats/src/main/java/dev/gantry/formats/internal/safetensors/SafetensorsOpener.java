// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// Opens safetensors weights: finds their data files, reads the headers and makes one catalogue of
/// them.
public final class SafetensorsOpener {
  static final String FILE_SUFFIX = ".safetensors";
  static final DataFiles DATA_FILES =
      new DataFiles(SafetensorsFormat.NAME, "model", FILE_SUFFIX, SafetensorsOpener::read);
  static final String INDEX_SUFFIX = DATA_FILES.indexSuffix();

  private SafetensorsOpener() {}

  /// Opens a safetensors file, an index (a name that ends in `.json`), or a folder.
  ///
  /// In a folder, `model.safetensors` alone is opened if it exists: the library that writes the
  /// hub's files reads it first, and leaves an old index beside it. Otherwise the index is
  /// opened: `model.safetensors.index.json`, or the only `*.safetensors.index.json`. In a folder
  /// with neither, all `*.safetensors` are opened together; if their names tell how many files
  /// there are, none may be missing. With an index, only the tensors that it names are in the
  /// catalogue.
  ///
  /// @throws MalformedFileException if a header or the index breaks a rule, or if headers and index
  ///     contradict each other: `missing-shard`, `tensor-not-in-shard`, `tensor-in-two-shards`; for a
  ///     folder also `no-safetensors`, `missing-data-files` and `several-indexes`
  /// @throws dev.gantry.core.TransferException if a file or folder cannot be opened or read
  public static WeightsCatalogue open(GantrySession session, Location location) {
    Optional<Folder> folder = Folder.at(session, location);
    if (folder.isPresent()) {
      return DATA_FILES.openFolder(folder.get());
    }
    try (FileBytes file = FileBytes.open(session, location)) {
      return DATA_FILES.open(file);
    }
  }

  private static WeightsCatalogue read(FileBytes file) {
    SafetensorsHeader header = SafetensorsHeader.read(file);
    return new WeightsCatalogue(
        SafetensorsFormat.NAME,
        List.of(header.file()),
        header.tensors().values(),
        header.metadata(),
        List.of());
  }

  /// Opens a local file or folder, as [#open(GantrySession, Location)] does.
  public static WeightsCatalogue open(GantrySession session, Path path) {
    return open(session, Location.of(path));
  }
}
