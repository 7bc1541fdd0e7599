// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import java.lang.foreign.MemorySegment;
import java.util.Optional;

/// Gets the records of a batch. Not thread-safe.
@FunctionalInterface
public interface RecordSink {
  /// A part of a record's data, and the memory to which its bytes may be read.
  ///
  /// @param start where the part begins, in bytes from the data's start
  record Straight(long start, MemorySegment memory) {}

  /// Gets a record.
  ///
  /// @param record its data is valid during the call
  /// @param number its number in the batch
  void accept(RawRecord record, int number);

  /// The part of a record that had better be read elsewhere than into the record's memory. It may be a guess: see
  /// [#acceptAround].
  ///
  /// @param length the length of the record's data, in bytes
  default Optional<Straight> straight(int number, long length) {
    return Optional.empty();
  }

  /// Gets a record of which a part was read where [#straight] said; the data have other bytes in the part's place.
  ///
  /// @return false if the guess was wrong: [#accept] must get the record then
  default boolean acceptAround(RawRecord record, int number, Straight part) {
    return false;
  }
}
