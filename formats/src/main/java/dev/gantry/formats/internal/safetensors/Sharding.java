// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.json.JsonWriter;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/// How weights are cut into the data files of a folder. Immutable.
///
/// @param stem what their names begin with: `model` makes `model-00001-of-00003.safetensors`, or
///     `model.safetensors` where there is one, and `model.safetensors.index.json`
/// @param shardBytes the most bytes of tensors in one file; a larger tensor has a file to itself
/// @param indexOfOne whether there is an index also where there is one file
public record Sharding(String stem, long shardBytes, boolean indexOfOne) {
  /// As Hugging Face's writers have it.
  private static final long DEFAULT_SHARD_BYTES = 5_000_000_000L;

  /// @throws MisuseException if the stem cannot begin a file's name, or `shardBytes` is not positive
  public Sharding {
    JsonWriter.requireText("a stem", stem);
    if (stem.isEmpty() || stem.contains("/") || stem.contains("\\") || !isName(stem)) {
      throw new MisuseException("a stem with which no file's name can begin: '" + stem + "'");
    }
    if (shardBytes < 1) {
      throw new MisuseException(
          "a data file must have room for 1 byte or more (was " + shardBytes + ")");
    }
  }

  /// Data files of 5 GB, named `model`; an index where there are several.
  public static Sharding defaults() {
    return new Sharding("model", DEFAULT_SHARD_BYTES, false);
  }

  public Sharding withStem(String chosen) {
    return new Sharding(chosen, shardBytes, indexOfOne);
  }

  public Sharding withShardBytes(long chosen) {
    return new Sharding(stem, chosen, indexOfOne);
  }

  public Sharding withIndexOfOne(boolean chosen) {
    return new Sharding(stem, shardBytes, chosen);
  }

  private static boolean isName(String stem) {
    try {
      return Path.of(stem).getNameCount() == 1;
    } catch (InvalidPathException _) {
      return false;
    }
  }
}
