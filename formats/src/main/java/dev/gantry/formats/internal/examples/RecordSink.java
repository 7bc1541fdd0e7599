// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// Receives the records of a batch. Not thread-safe.
@FunctionalInterface
public interface RecordSink {
  /// A part of a record's data, and the memory to which its bytes may be read.
  ///
  /// @param start the offset of the part, in bytes from the data's start
  record Straight(long start, MemorySegment memory) {}

  /// Receives a record.
  ///
  /// @param record the record, whose data is valid during the call
  /// @param number the record's number in the batch
  void accept(RawRecord record, int number);

  /// Returns the part of a record that the caller should read straight to other memory, not into
  /// the record's. The part may be a guess: see [#acceptAround].
  ///
  /// @param length the length of the record's data, in bytes
  default Optional<Straight> straight(int number, long length) {
    return Optional.empty();
  }

  /// Receives a record of which one part was read to the memory that [#straight] gave. In the
  /// record's data, the bytes at the part's offset are undefined.
  ///
  /// @return false if the guess was wrong; the caller must then give the whole record to
  ///     [#accept]
  default boolean acceptAround(RawRecord record, int number, Straight part) {
    return false;
  }
}
