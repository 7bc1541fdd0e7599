// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/// Reads JSON members that several formats share, with the same errors.
public final class JsonMembers {
  /// The most dimensions of a tensor. Source: NumPy and PyTorch hold no more than 64.
  public static final int MAX_RANK = 64;

  /// How many of a tensor's dimensions do not count as entries. Real tensors have fewer.
  private static final int FREE_RANK = 8;

  private JsonMembers() {}

  /// Reads a dtype by its name. The kinds of errors are `invalid-dtype` and `unknown-dtype`.
  ///
  /// @param noun says in errors what `name` names
  public static DType dtype(JsonReader json, String noun, String name) {
    if (json.peek() != JsonReader.Kind.STRING) {
      throw json.unwanted(
          JsonReader.Kind.STRING, "invalid-dtype", "the dtype of " + subject(noun, name));
    }
    String spelled = json.string();
    return DType.named(spelled)
        .orElseThrow(() ->
            json.malformed(
                "unknown-dtype", subject(noun, name) + " has the unknown dtype '" + spelled + "'"));
  }

  /// Reads an array of dimensions. The kinds of errors are `invalid-shape`, `too-many-dimensions` and those
  /// of [JsonReader#count] and [JsonReader#countEntry].
  ///
  /// @param noun says in errors what `name` names
  public static TensorShape shape(JsonReader json, String noun, String name) {
    if (json.peek() != JsonReader.Kind.ARRAY) {
      throw json.unwanted(
          JsonReader.Kind.ARRAY, "invalid-shape", "the shape of " + subject(noun, name));
    }
    long[] dimensions = new long[4];
    int rank = 0;
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      if (rank == MAX_RANK) {
        throw json.malformed(
            "too-many-dimensions",
            subject(noun, name) + " has more than " + MAX_RANK + " dimensions");
      }
      if (rank >= FREE_RANK) {
        json.countEntry();
      }
      if (rank == dimensions.length) {
        dimensions = Arrays.copyOf(dimensions, 2 * rank);
      }
      dimensions[rank++] = json.count("dimension");
    }
    return TensorShape.of(Arrays.copyOf(dimensions, rank));
  }

  private static String subject(String noun, String name) {
    return noun + " '" + name + "'";
  }

  /// Refuses a file name that could mean a file outside the folder of the file that contains it.
  /// The kinds of errors are `shard-name-with-dot-dot`, `shard-name-with-separator` and
  /// `unsafe-shard-name`.
  ///
  /// @param name the string that `json` read last
  /// @param claim says in errors what the file claims
  public static void checkFileName(JsonReader json, String name, String claim) {
    List<String> parts = List.of(name.split("[/\\\\]", -1));
    if (parts.contains("..")) {
      throw json.malformed("shard-name-with-dot-dot", claim + ", which leads out of the folder");
    }
    if (parts.size() > 1) {
      throw json.malformed("shard-name-with-separator", claim + ", which is a path");
    }
    if (name.equals(".") || !isFileName(name)) {
      throw json.malformed("unsafe-shard-name", claim + ", which cannot be a file's name");
    }
  }

  /// Whether a text can be a file's name. It cannot if it has a NUL, or a character that this
  /// system does not allow in file names.
  public static boolean isFileName(String name) {
    try {
      return !name.isEmpty() && Path.of(name).getNameCount() == 1;
    } catch (InvalidPathException _) {
      return false;
    }
  }
}
