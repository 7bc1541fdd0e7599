// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.Cancellation;
import java.lang.foreign.MemorySegment;

/// One read that a [StoredFile] carries out. Thread-safe.
public abstract class ReadRequest {
  private final MemorySegment target;
  private final long offset;
  private final Cancellation cancellation;

  /// @param target native memory
  /// @param offset where the read begins in the file, in bytes
  /// @param cancellation ends this read early
  protected ReadRequest(MemorySegment target, long offset, Cancellation cancellation) {
    this.target = target;
    this.offset = offset;
    this.cancellation = cancellation;
  }

  /// The native memory to fill completely. Any thread may write to it.
  public final MemorySegment target() {
    return target;
  }

  /// The offset of the first byte, from the start of the file.
  public final long offset() {
    return offset;
  }

  /// Ends this read early. A store that can end it calls [#failed] soon after; any other store
  /// completes the read.
  public final Cancellation cancellation() {
    return cancellation;
  }

  /// Says whether the store may repeat its request to the server after a transient failure. Each
  /// answer of true uses up one of the retries that this read's load or dataset has for all of its
  /// reads together.
  public boolean mayRetry() {
    return true;
  }

  /// Registers an action for the case that this read takes much longer than other reads of its
  /// load, such as a second request to the server. Each action runs at most once, on any thread.
  public void whenSlow(Runnable action) {}

  /// Reports how many bytes have arrived, so that a reader of the first bytes need not wait for
  /// the last byte. A store need not call this method. After a transient failure, a store may
  /// report bytes again that it has reported before.
  ///
  /// @param bytes the number of bytes that have arrived, from the start of the target
  public void arrived(long bytes) {}

  /// Reports that the target is full.
  public abstract void completed();

  /// Reports that the read has failed.
  ///
  /// @param reason a [dev.gantry.core.GantryException] that names the file, the offset and why; any
  ///     other exception is reported as a defect of the store
  public abstract void failed(Throwable reason);
}
