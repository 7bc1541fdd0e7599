// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.util.Collections;
import java.util.SequencedMap;

/// What the header of a safetensors file says, checked in full. Immutable.
///
/// @param tensors by name, in the order of their bytes in the file, then of their names
/// @param metadata the file's notes (`__metadata__`), in header order; empty where it has none
/// @param dataStart where the header ends and the tensors' bytes begin, in bytes; may be unaligned
/// @param fileLength in bytes, which is where the last tensor ends
public record SafetensorsHeader(
    Location file,
    SequencedMap<String, StoredTensor> tensors,
    SequencedMap<String, String> metadata,
    long dataStart,
    long fileLength) {
  /// The longest header, in bytes. Source: the reference implementation's `MAX_HEADER_SIZE`.
  public static final long MAX_HEADER_BYTES = 100_000_000;

  /// The most tensors in one file. A header of [#MAX_HEADER_BYTES] has room for some more, none of
  /// them with a name.
  public static final int MAX_TENSORS = 1_000_000;

  /// The most notes in one file: more than any writer makes, and as many as fit a small heap.
  public static final int MAX_NOTES = JsonReader.MAX_NOTES;

  /// The most dimensions of a tensor.
  public static final int MAX_RANK = JsonMembers.MAX_RANK;

  /// The member of a header that holds the notes, and so no tensor's name.
  static final String METADATA = "__metadata__";

  public SafetensorsHeader {
    // Not copied: the parser that made them is done with them.
    tensors = Collections.unmodifiableSequencedMap(tensors);
    metadata = Collections.unmodifiableSequencedMap(metadata);
  }

  /// Reads and checks the header of `file`, in one pass through a small buffer.
  ///
  /// The verdict is that of the reference implementation (safetensors 0.8.0), but for some forms
  /// that no writer makes and that the reference lets pass: a tensor named twice, a tensor or its
  /// dtype written as another JSON value than the format says, and sizes past the bounds of this
  /// class, of [Long], or of 16 Mi characters for one string.
  ///
  /// @throws MalformedFileException if it breaks a rule of the format, each with its own kind
  /// @throws TransferException if the file cannot be opened or read
  public static SafetensorsHeader read(Session session, Location file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return read(bytes);
    }
  }

  /// As [#read(Session, Location)], of a file that is open already.
  static SafetensorsHeader read(FileBytes file) {
    return new HeaderParser(file).parse();
  }

  /// As [#read(Session, Location)], of a local file.
  public static SafetensorsHeader read(Session session, Path file) {
    return read(session, Location.of(file));
  }
}
