// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;

/// The policy for a file whose framing is broken. It concerns only the framing: a record whose
/// checksums hold was written as it is, so a message in it that cannot be parsed is always an
/// error.
public sealed interface CorruptionPolicy {
  /// The first fault is thrown.
  record Fail() implements CorruptionPolicy {}

  /// Faults are passed over, logged and counted; one more than `most` is thrown.
  ///
  /// After a fault of kind `data-crc` the next record follows. After any other fault the file ends there, since it is not
  /// known where the next record begins.
  ///
  /// @param most faults to pass over, over all files that are read together
  record Skip(long most) implements CorruptionPolicy {
    public Skip {
      MisuseException.requireRange("faults to skip", most, 0, Long.MAX_VALUE);
    }
  }
}
