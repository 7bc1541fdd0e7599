// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonWriter;

/// Says how weights are split into the data files of a folder. Immutable.
///
/// @param stem the start of the files' names: `model` makes `model-00001-of-00003.safetensors`, or
///     `model.safetensors` for a single file, and `model.safetensors.index.json`
/// @param fileBytes the most bytes of tensors in one file; a larger tensor has a file to itself
/// @param indexOfOne whether to write an index also for a single data file
public record DataFileOptions(String stem, long fileBytes, boolean indexOfOne) {
  /// The default file size of Hugging Face's writers.
  private static final long DEFAULT_FILE_BYTES = 5_000_000_000L;

  /// @throws MisuseException if the stem cannot begin a file's name, or `fileBytes` is not positive
  public DataFileOptions {
    JsonWriter.requireText("optName", stem);
    if (stem.contains("/") || stem.contains("\\") || !JsonMembers.isFileName(stem)) {
      throw new MisuseException(
          "optName must be what a file's name can begin with, without a folder (was '"
              + stem
              + "')");
    }
    if (fileBytes < 1) {
      throw new MisuseException(
          "a data file must have room for 1 byte or more (was " + fileBytes + ")");
    }
  }

  /// Makes data files of up to 5 GB, named `model`, and an index if there are several.
  public static DataFileOptions defaults() {
    return new DataFileOptions("model", DEFAULT_FILE_BYTES, false);
  }

  public DataFileOptions withStem(String chosen) {
    return new DataFileOptions(chosen, fileBytes, indexOfOne);
  }

  public DataFileOptions withFileBytes(long chosen) {
    return new DataFileOptions(stem, chosen, indexOfOne);
  }
}
