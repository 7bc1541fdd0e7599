// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.Location;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// A stream's current record.
///
/// @param number the record's number in its file, from 0
/// @param offset the file offset of the record's header
/// @param length the length of the record's data in bytes
/// @param data the data, if it is in memory, else empty
/// @param shared the file to read the data from; null if the data is in memory
record StreamRecord(
    Location file,
    long number,
    long offset,
    long length,
    MemorySegment data,
    @Nullable SharedReader shared) {
  /// Returns the reader's current record.
  static StreamRecord of(SharedReader shared) {
    TfRecordReader reader = shared.reader();
    boolean inMemory = reader.hasData();
    return new StreamRecord(
        reader.location(),
        reader.number(),
        reader.offset(),
        reader.length(),
        inMemory ? reader.record() : MemorySegment.NULL,
        inMemory ? null : shared);
  }
}
