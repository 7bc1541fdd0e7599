// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.formats.spi.FileBytes;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// What a `model.safetensors.index.json` says: which data file holds which tensor. The files
/// themselves are not looked at here. Immutable.
///
/// @param weightMap by tensor name, in the order of the index
public record SafetensorsIndex(Location file, SequencedMap<String, Entry> weightMap) {
  /// The longest index, in bytes; a header is bounded likewise.
  public static final long MAX_INDEX_BYTES = 100_000_000;

  /// The file that the index puts a tensor in.
  ///
  /// @param dataFile the name of a file in the folder of the index, never a path that leads elsewhere
  /// @param offset where in the index this is said, in bytes
  public record Entry(String dataFile, long offset) {}

  public SafetensorsIndex {
    weightMap = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(weightMap));
  }

  /// Reads and checks the index `file`.
  ///
  /// @throws MalformedFileException if it is no index, each fault with its own kind
  /// @throws TransferException if the file cannot be opened or read
  public static SafetensorsIndex read(Session session, Location file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return read(bytes);
    }
  }

  /// As [#read(Session, Location)], of a file that is open already.
  static SafetensorsIndex read(FileBytes file) {
    return new IndexParser(file).parse();
  }

  /// As [#read(Session, Location)], of a local file.
  public static SafetensorsIndex read(Session session, Path file) {
    return read(session, Location.of(file));
  }
}
