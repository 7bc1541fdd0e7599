// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.Cancellation;
import java.lang.foreign.MemorySegment;

/// One read that a [StoredFile] carries out. Thread-safe.
public interface ReadRequest {
  /// Native memory, to be filled whole. Any thread may write to it.
  MemorySegment target();

  /// Of the first byte, from the start of the file.
  long offset();

  /// Ends this read early. A store that can end it calls [#failed] soon after; any other store goes
  /// on to its end.
  Cancellation cancellation();

  /// The target is full.
  void completed();

  /// The read has failed.
  ///
  /// @param reason a [dev.gantry.core.GantryException] that names the file, the offset and why; any
  ///     other exception is reported as a defect of the store
  void failed(Throwable reason);
}
