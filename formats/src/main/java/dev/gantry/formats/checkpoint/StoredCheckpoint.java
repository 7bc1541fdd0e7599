package dev.gantry.formats.checkpoint;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.FileErrors;
import dev.gantry.formats.safetensors.SafetensorsCheckpoint;
import dev.gantry.formats.safetensors.TensorInfo;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Locale;

/// A checkpoint that was saved whole, as its manifest says. Immutable.
///
/// @param folder that holds it
public record StoredCheckpoint(Path folder, Manifest manifest) {
  public long step() {
    return manifest.step();
  }

  /// Opens a group's tensors, after all files' sizes were checked.
  ///
  /// @throws MalformedFileException if a file is gone or of another size than when it was saved, or
  ///     a header or index is damaged
  public SafetensorsCheckpoint open(String group) {
    checkSizes();
    return SafetensorsCheckpoint.open(folder.resolve(indexName(group)));
  }

  /// Whether there is such a group.
  public boolean has(String group) {
    return manifest.files().stream().anyMatch(file -> file.name().equals(indexName(group)));
  }

  static String indexName(String group) {
    return group + ".safetensors.index.json";
  }

  /// @throws MalformedFileException of kind `missing-file` or `wrong-size`
  public void checkSizes() {
    for (Manifest.FileEntry entry : manifest.files()) {
      Path file = folder.resolve(entry.name());
      long size;
      try {
        size = Files.size(file);
      } catch (NoSuchFileException _) {
        throw new MalformedFileException(file, 0, "missing-file", "the manifest lists it");
      } catch (IOException e) {
        throw FileErrors.of("stat", file.toString(), e);
      }
      if (size != entry.size()) {
        throw new MalformedFileException(
            file,
            Math.min(size, entry.size()),
            "wrong-size",
            size + " bytes, where the manifest has " + entry.size());
      }
    }
  }

  /// Compares what a tensor's bytes sum to with what they did when they were saved.
  ///
  /// @param tensor as [#open] gave it
  /// @param crc32c of its bytes
  /// @throws MalformedFileException of kind `checksum-mismatch`, or `checksum-missing` where the
  ///     manifest has none
  public void check(TensorInfo tensor, int crc32c) {
    Path file = tensor.extent().file();
    Integer saved =
        manifest.files().stream()
            .filter(entry -> file.endsWith(entry.name()))
            .findFirst()
            .map(entry -> entry.tensors().get(tensor.name()))
            .orElse(null);
    if (saved == null) {
      throw new MalformedFileException(
          folder.resolve(Manifest.FILE_NAME),
          0,
          "checksum-missing",
          "tensor '" + tensor.name() + "' of " + file.getFileName() + " has none");
    }
    if (saved != crc32c) {
      throw new MalformedFileException(
          file,
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
}
