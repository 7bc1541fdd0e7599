// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.output;

import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;

/// Writes a DataFrame as one set of files. Each task writes one part, and the driver makes the set
/// from one part of each partition. Spark sends this object to the executors.
///
/// @param <P> the description of a part that a task sends to the driver; it must be serializable
public interface SetOutput<P> extends Serializable {
  /// Begins the set, on the driver.
  ///
  /// @param mayReplace whether an existing set is replaced
  Begun<P> begin(boolean mayReplace);

  /// Writes the rows of a partition as one part, on an executor. A part that fails may leave
  /// files, which are removed with the folder of unfinished work.
  ///
  /// @param part the part's name, which is unique to this attempt of the task
  /// @param rows the rows, at least one
  P write(String part, Iterator<InternalRow> rows);

  /// A set that is being written. Closing it removes the written files, unless the set is
  /// finished.
  interface Begun<P> extends AutoCloseable {
    /// Makes the set from these parts, and removes all other parts.
    void finish(List<P> parts);

    @Override
    void close();
  }
}
