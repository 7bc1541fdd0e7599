// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.util.Collections;
import java.util.SequencedMap;

/// The checked contents of a safetensors file's header. Immutable.
///
/// @param tensors the tensors by name, ordered by their bytes in the file, then by name
/// @param metadata the file's notes (`__metadata__`), in header order; may be empty
/// @param dataStart the file offset at which the tensors' bytes begin; may be unaligned
/// @param fileLength the file's size in bytes, which is the end of the last tensor
public record SafetensorsHeader(
    Location file,
    SequencedMap<String, StoredTensor> tensors,
    SequencedMap<String, String> metadata,
    long dataStart,
    long fileLength) {
  /// The longest header, in bytes.
  public static final long MAX_HEADER_BYTES = OtherFormats.MAX_SAFETENSORS_HEADER_BYTES;

  /// The most tensors in one file. A header of [#MAX_HEADER_BYTES] has no room for more, except with tiny
  /// names.
  public static final int MAX_TENSORS = 1_000_000;

  /// The most notes in one file. No writer makes as many, and a small heap can hold them.
  public static final int MAX_NOTES = JsonReader.MAX_NOTES;

  /// The most dimensions of a tensor.
  public static final int MAX_RANK = JsonMembers.MAX_RANK;

  /// The member of a header that holds the notes; no tensor can have this name.
  static final String METADATA = "__metadata__";

  public SafetensorsHeader {
    // The maps are not copied, since the parser that made them does not use them any more.
    tensors = Collections.unmodifiableSequencedMap(tensors);
    metadata = Collections.unmodifiableSequencedMap(metadata);
  }

  /// Reads and checks the header of `file`, in one pass through a small buffer.
  ///
  /// It accepts and refuses what the reference implementation (safetensors 0.8.0) does, except that it
  /// refuses some forms that no writer makes and that the reference accepts: a tensor named twice, a tensor
  /// or its dtype written as another JSON value than the format says, and sizes past the bounds of this
  /// class, of [Long], or of 16 Mi characters for one string.
  ///
  /// @throws MalformedFileException if the header breaks a rule of the format, with a kind for each rule
  /// @throws TransferException if the file cannot be opened or read
  public static SafetensorsHeader read(Session session, Location file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return read(bytes);
    }
  }

  /// Reads the header of an open file, as [#read(Session, Location)] does.
  static SafetensorsHeader read(FileBytes file) {
    return new HeaderParser(file).parse();
  }

  /// Reads the header of a local file, as [#read(Session, Location)] does.
  public static SafetensorsHeader read(Session session, Path file) {
    return read(session, Location.of(file));
  }
}
