// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;

/// The options of a ring. A ring takes `slots` times `slotBytes` of the device's memory. On a GPU,
/// it also takes `slots` times `hostBytes` of pinned memory, and its readers take pinned buffers.
///
/// @param slots batches that exist at once, the consumer's included; 2 or more
/// @param slotBytes a slot's size, which no batch plan may exceed; a multiple of
///     [PlanLimits#BLOCK_BYTES]
/// @param hostBytes the most bytes that the CPU writes for one batch
/// @param transfer threads, transport and cache policy of the reads, and the largest request. A
///     reader that stages pins two buffers; each has the size of the largest request, or of a slot
///     if that is less, and 64 KiB more for small reads. The cancellation ends the ring; the
///     progress listener is unused
/// @param poison whether the ring overwrites a slot with bytes of 0xDB when its batch is closed,
///     which exposes code that reads a batch after closing it
public record RingOptions(
    Device device,
    int slots,
    long slotBytes,
    long hostBytes,
    TransferOptions transfer,
    boolean poison) {
  /// The fewest slots: one for the consumer and one to fill.
  public static final int MIN_SLOTS = 2;

  /// The most slots that a ring may have.
  public static final int MAX_SLOTS = 64;

  public RingOptions {
    MisuseException.requireRange("slots", slots, MIN_SLOTS, MAX_SLOTS);
    PlanLimits.requireBlocks("slotBytes", slotBytes, Long.MAX_VALUE);
    MisuseException.requireRange("hostBytes", hostBytes, 0, slotBytes);
  }

  /// The most bytes of one read: no read is larger than its slot.
  long requestBytes() {
    return Math.min(transfer.limits().requestBytes(), slotBytes);
  }
}
