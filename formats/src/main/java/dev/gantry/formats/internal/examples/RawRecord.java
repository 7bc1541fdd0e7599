// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.batch.DevicePictures;
import dev.gantry.formats.internal.order.Mix;
import dev.gantry.formats.spi.FieldDecoder;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/// A record's bytes, and its position in its file, which errors name.
///
/// @param number the record's number in its file, from 0
/// @param offset the file offset of the record's header
/// @param data the record's data, in the CPU's memory
public record RawRecord(Location file, long number, long offset, MemorySegment data) {
  /// Stands for no record.
  static final RawRecord NONE = new RawRecord(Path.of(""), 0, 0, MemorySegment.NULL);

  public RawRecord(Path file, long number, long offset, MemorySegment data) {
    this(Location.of(file), number, offset, data);
  }

  /// Decodes a feature's string, with a seed that depends on the file's name, the record and the epoch alone.
  ///
  /// @throws MalformedFileException of kind `undecodable`
  public void decode(
      String feature,
      FieldDecoder decoder,
      long epoch,
      MemorySegment string,
      MemorySegment target) {
    try {
      long seed = Mix.key(file.fileName().hashCode(), epoch, number);
      DevicePictures.run(decoder, () -> decoder.decode(string, target, seed));
    } catch (IOException e) {
      throw fault(ExampleDecoder.UNDECODABLE, "feature '" + feature + "': " + e.getMessage());
    }
  }

  /// Makes an error about this record.
  public MalformedFileException fault(String kind, String detail) {
    return new MalformedFileException(file, offset, kind, "record " + number + ": " + detail);
  }
}
