// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import java.nio.ByteBuffer;
import java.util.List;

/// A file format that holds named tensors. An implementation has a public constructor without
/// parameters and a line in `META-INF/services/dev.gantry.formats.spi.WeightsFormat`; then loads, the
/// command line and conversions know it. Thread-safe.
public interface WeightsFormat {
  /// The format's name for users, such as `safetensors`.
  String name();

  /// The endings of its files' names in lower case, such as `.safetensors`. A file of such a name whose
  /// bytes no format recognises is opened with this format, so that its error says what is wrong with the
  /// file.
  List<String> suffixes();

  /// Whether a file is of this format, by its first bytes. A file's name may decide between formats
  /// that begin alike.
  ///
  /// @param fileName the last part of the file's name; may be empty
  /// @param start the first bytes of the file, at most 512; fewer where the file has fewer
  boolean recognises(String fileName, ByteBuffer start);

  /// Whether a folder of several files is of this format.
  ///
  /// @param files the files directly in the folder, ordered by name
  default boolean recognisesFolder(List<Location> files) {
    return false;
  }

  /// Reads what a file says of its tensors, and checks all of it before it is used.
  ///
  /// @param file the open file, which the caller closes; its first bytes have been read already
  /// @throws dev.gantry.core.MalformedFileException if a file breaks a rule of the format
  /// @throws dev.gantry.core.TransferException if a file cannot be opened or read
  WeightsCatalogue open(FileBytes file);

  /// Reads what the files of a folder say, as [#open] does for one file.
  ///
  /// @param session opens the files by its stores
  /// @param folder a folder that this format recognises
  /// @param files the files directly in the folder, as for [#recognisesFolder]
  default WeightsCatalogue openFolder(Session session, Location folder, List<Location> files) {
    throw new MisuseException(name() + " weights must be a file (was the folder " + folder + ")");
  }
}
