// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.output;

import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;

/// Writes a DataFrame as one set of files. Each task writes a part, and the driver makes the set from one
/// part of each partition. This object is sent to the executors.
///
/// @param <P> what a task tells the driver of its part, which can be serialized
public interface SetOutput<P> extends Serializable {
  /// Begins the set, on the driver.
  ///
  /// @param mayReplace whether a set that is there is replaced
  Begun<P> begin(boolean mayReplace);

  /// Writes the rows of a partition as a part, on an executor. A part that fails may leave files, which go
  /// with the folder of unfinished work.
  ///
  /// @param part a name that no other attempt of a task has
  /// @param rows one or more
  P write(String part, Iterator<InternalRow> rows);

  /// A set that is being written. Closing it removes what was written, unless the set is finished.
  interface Begun<P> extends AutoCloseable {
    /// Makes the set from these parts; other parts are removed.
    void finish(List<P> parts);

    @Override
    void close();
  }
}
