// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import java.util.OptionalLong;

/// A sequence of records, with a cursor from which it can be continued later. Not thread-safe.
sealed interface Records extends AutoCloseable permits RecordStream, ShuffledStream {
  /// Goes to the next record.
  ///
  /// @return whether there is a next record
  boolean next();

  /// Returns the current record, with its data or its file; it is valid until the next call of
  /// [#next].
  ///
  /// @throws dev.gantry.core.MisuseException if there is none
  StreamRecord record();

  /// How many records follow, if that is known.
  OptionalLong left();

  /// The position after the current record.
  StreamCursor cursor();

  @Override
  void close();
}
