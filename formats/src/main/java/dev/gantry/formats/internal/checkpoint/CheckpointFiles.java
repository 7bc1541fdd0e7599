// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/// Compares a checkpoint's files, in any store, with what its manifest says of them.
///
/// @param at the manifest's own file
record CheckpointFiles(GantrySession session, Location at, Manifest manifest) {
  /// Finds the checkpoint whose folder holds a data file; empty if the folder's name or manifest is no
  /// checkpoint's.
  static Optional<CheckpointFiles> around(GantrySession session, Location dataFile) {
    if (!StoreFolder.isCheckpoint(folderName(dataFile))) {
      return Optional.empty();
    }
    Location manifest = dataFile.sibling(StoreFolder.MANIFEST);
    try {
      return Optional.of(new CheckpointFiles(session, manifest, Manifest.read(session, manifest)));
    } catch (TransferException e) {
      if (e.isNotFound()) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private static String folderName(Location dataFile) {
    Path path =
        switch (dataFile) {
          case Location.Local(Path file, _) -> file.toAbsolutePath();
          case Location.Remote remote -> Path.of("/" + remote.uri().getPath());
        };
    Path folder = path.getParent();
    return folder == null || folder.getFileName() == null ? "" : folder.getFileName().toString();
  }

  /// Opens a group's tensors, after the checksums of its headers and index were compared.
  ///
  /// @throws MalformedFileException if a header or index is damaged
  WeightsCatalogue open(String group) {
    Location index = at.sibling(CheckpointFolder.indexName(group));
    WeightsCatalogue tensors = SafetensorsOpener.open(session, index);
    try (FileBytes bytes = FileBytes.open(session, index)) {
      requireSame(index, bytes.crc32c(0, bytes.length()), entry(index).crc32c());
    }
    checkHeaders(tensors);
    return tensors;
  }

  /// Compares the checksums of the headers of these tensors' data files.
  void checkHeaders(WeightsCatalogue tensors) {
    tensors.tensors().values().stream()
        .collect(Collectors.groupingBy(tensor -> tensor.extent().file()))
        .forEach(this::checkHeader);
  }

  /// Checks a header without reading the tensors: its CRC32C, combined with the tensors' from the manifest,
  /// must be the file's.
  ///
  /// @param tensors the data file's tensors by offset; the header ends where the first one begins
  private void checkHeader(Location dataFile, List<StoredTensor> tensors) {
    Manifest.FileEntry entry = entry(dataFile);
    int sum;
    try (FileBytes bytes = FileBytes.open(session, dataFile)) {
      sum = bytes.crc32c(0, tensors.getFirst().extent().offset());
    }
    for (StoredTensor tensor : tensors) {
      sum = Crc32c.combine(sum, savedSum(entry, tensor), tensor.extent().length());
    }
    requireSame(dataFile, sum, entry.crc32c());
  }

  /// The manifest's checksums of tensors, which loads compare.
  List<KnownChecksums.Known> sums(WeightsCatalogue tensors) {
    return tensors.tensors().values().stream()
        .map(tensor ->
            new KnownChecksums.Known(
                tensor.extent(),
                "tensor '" + tensor.name() + "'",
                savedSum(entry(tensor.extent().file()), tensor)))
        .toList();
  }

  /// Compares a tensor's CRC32C with the manifest's; see [CheckpointFolder#check].
  void check(StoredTensor tensor, int crc32c) {
    int saved = savedSum(entry(tensor.extent().file()), tensor);
    if (saved != crc32c) {
      throw new MalformedFileException(
          tensor.extent().file(),
          tensor.extent().offset(),
          "checksum-mismatch",
          String.format(
              Locale.ROOT,
              "tensor '%s' has CRC32C %08x, and had %08x when it was saved",
              tensor.name(),
              crc32c,
              saved));
    }
  }

  private static void requireSame(Location file, int sum, int saved) {
    if (sum != saved) {
      throw new MalformedFileException(
          file,
          0,
          "checksum-mismatch",
          String.format(
              Locale.ROOT,
              "what tells of the tensors has CRC32C %08x, and had %08x when it was saved",
              sum,
              saved));
    }
  }

  private Manifest.FileEntry entry(Location file) {
    return manifest.files().stream()
        .filter(entry -> file.fileName().equals(entry.name()))
        .findFirst()
        .orElseThrow(() ->
            new MalformedFileException(
                at, 0, "unlisted-file", "'" + file.fileName() + "' is not in the manifest"));
  }

  private int savedSum(Manifest.FileEntry entry, StoredTensor tensor) {
    Integer saved = entry.tensors().get(tensor.name());
    if (saved == null) {
      throw new MalformedFileException(
          at,
          0,
          "checksum-missing",
          "tensor '" + tensor.name() + "' of " + entry.name() + " has none");
    }
    return saved;
  }
}
