// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.formats.spi.FileBytes;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// The contents of a `model.safetensors.index.json`: the data file of each tensor. It does not open the
/// data files. Immutable.
///
/// @param weightMap the entries by tensor name, in the order of the index
public record SafetensorsIndex(Location file, SequencedMap<String, Entry> weightMap) {
  /// The longest index, in bytes; a header has the same bound.
  public static final long MAX_INDEX_BYTES = 100_000_000;

  /// The data file that the index gives for a tensor.
  ///
  /// @param dataFile the name of a file in the folder of the index, never a path that leads elsewhere
  /// @param offset the entry's offset in the index, in bytes
  public record Entry(String dataFile, long offset) {}

  public SafetensorsIndex {
    weightMap = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(weightMap));
  }

  /// Reads and checks the index `file`.
  ///
  /// @throws MalformedFileException if the file is no valid index, with a kind for each fault
  /// @throws TransferException if the file cannot be opened or read
  public static SafetensorsIndex read(Session session, Location file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return read(bytes);
    }
  }

  /// Reads an index that is open, as [#read(Session, Location)] does.
  static SafetensorsIndex read(FileBytes file) {
    return new IndexParser(file).parse();
  }
}
