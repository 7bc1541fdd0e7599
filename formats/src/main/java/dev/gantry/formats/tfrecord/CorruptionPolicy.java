// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;

/// Says what a reader does with a file whose framing is broken. The policy concerns only the
/// framing: if a record's checksums match, the record was written as it is, so a message that
/// cannot be parsed is always an error.
public sealed interface CorruptionPolicy {
  /// The reader throws the first fault.
  record Fail() implements CorruptionPolicy {}

  /// The reader skips, logs and counts up to `most` faults, and throws the next one.
  ///
  /// After a fault of kind `data-crc` the reader continues with the next record. Any other fault
  /// ends the file for the reader, since it cannot know where the next record begins.
  ///
  /// @param most how many faults to skip, counted over all files that are read together
  record Skip(long most) implements CorruptionPolicy {
    public Skip {
      MisuseException.requireRange("faults to skip", most, 0, Long.MAX_VALUE);
    }
  }
}
