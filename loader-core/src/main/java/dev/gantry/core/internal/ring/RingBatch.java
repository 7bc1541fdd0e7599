// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import java.util.concurrent.atomic.AtomicBoolean;

/// A filled slot, which belongs to the consumer until the consumer closes this batch. A batch may
/// outlive its ring.
///
/// All bytes have arrived, so kernels on any stream may read them. Thread-safe.
public final class RingBatch<T> implements AutoCloseable {
  private final long number;
  private final T label;
  private final Slab slab;
  private final Runnable giveBack;
  private final AtomicBoolean closed = new AtomicBoolean();

  RingBatch(long number, T label, Slab slab, Runnable giveBack) {
    this.number = number;
    this.label = label;
    this.slab = slab;
    this.giveBack = giveBack;
  }

  /// The source's description of the batch, such as where its arrays lie.
  public T label() {
    return label;
  }

  /// The batch's number in the ring's order, from 0.
  public long number() {
    return number;
  }

  /// A part of the slot. To use the region after the batch is closed, call [Region#retain] before
  /// closing the batch: the ring then leaves this memory to the caller and allocates new memory
  /// for the slot.
  ///
  /// @param offset bytes from the slot's start
  /// @throws MisuseException if the slot has no such part, or the batch is closed
  public Region region(long offset, long length) {
    if (closed.get()) {
      throw new MisuseException("batch " + number + " is closed");
    }
    if (offset < 0 || length < 0 || offset > slab.size() - length) {
      throw new MisuseException(
          "no " + length + " bytes at " + offset + " of a slot of " + slab.size());
    }
    return new Region(slab, offset, length);
  }

  /// Gives the slot back to the ring; closing twice does nothing. Work that was queued on the device's default stream
  /// before this call may still read the slot: the ring fills it again only after that work. Work on other streams must
  /// be done, or the default stream must wait for it.
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      giveBack.run();
    }
  }
}
