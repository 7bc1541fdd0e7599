// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import java.util.OptionalLong;

/// Records one after the other, and where to go on later. Not thread-safe.
sealed interface Records extends AutoCloseable permits RecordStream, ShuffledStream {
  /// Goes to the next record.
  ///
  /// @return whether there is one
  boolean next();

  /// The record at hand: its data, or the share of its file, until the next call of [#next].
  ///
  /// @throws dev.gantry.core.MisuseException if there is none
  StreamRecord record();

  /// How many records follow, where that is known.
  OptionalLong left();

  /// After the record, and before the next one.
  StreamCursor cursor();

  @Override
  void close();
}
