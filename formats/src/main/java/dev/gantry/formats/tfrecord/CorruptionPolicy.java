// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;

/// What to do with a file whose framing is broken. Framing only: a record whose checksums hold was written as it is, so
/// a message in it that cannot be parsed is always an error.
public sealed interface CorruptionPolicy {
  /// The first fault is thrown.
  record Fail() implements CorruptionPolicy {}

  /// Faults are passed over, logged and counted; one more than `most` is thrown.
  ///
  /// After a fault of kind `data-crc` the next record follows. After `length-crc` it is not known
  /// where that is: the file ends there, or goes on at the next bytes within `searchBytes` that are
  /// a header with a right checksum. Such bytes may lie inside of a damaged record that holds
  /// another TFRecord file, so the search is off unless asked for. After any other fault the file
  /// ends. Of records that are lost together, the fault counts as one, for their numbers too; where
  /// a compressed file breaks off during the search, that counts as one more.
  ///
  /// @param most faults to pass over, over all files that are read together
  /// @param searchBytes how far to look for a header; 0 to end the file instead
  record Skip(long most, long searchBytes) implements CorruptionPolicy {
    public Skip {
      MisuseException.requireRange("faults to skip", most, 0, Long.MAX_VALUE);
      MisuseException.requireRange("searchBytes", searchBytes, 0, Long.MAX_VALUE);
    }

    /// Without a search.
    public static Skip upTo(long most) {
      return new Skip(most, 0);
    }
  }
}
