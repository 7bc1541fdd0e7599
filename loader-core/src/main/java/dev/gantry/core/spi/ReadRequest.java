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

  /// Ends this read early. A store that can end it calls [#failed] soon after; any other store goes
  /// on to its end.
  public final Cancellation cancellation() {
    return cancellation;
  }

  /// Asks whether the server may be asked again after a failure that may pass. Each answer of true uses some of the
  /// patience that this read's load or dataset has for all of its reads together.
  public boolean mayRetry() {
    return true;
  }

  /// Registers what to do if this read takes much longer than others of its load, such as asking the server a second
  /// time. Each action is run once at most, on any thread.
  public void whenSlow(Runnable action) {}

  /// Reports how far the read has come, so that those who want its first bytes need not wait for the last. A store may leave
  /// this out. After a failure that passes, bytes that had come may come once more.
  ///
  /// @param bytes how many bytes of the target are there, from its start
  public void arrived(long bytes) {}

  /// Reports that the target is full.
  public abstract void completed();

  /// Reports that the read has failed.
  ///
  /// @param reason a [dev.gantry.core.GantryException] that names the file, the offset and why; any
  ///     other exception is reported as a defect of the store
  public abstract void failed(Throwable reason);
}
