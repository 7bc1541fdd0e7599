package dev.gantry.core.internal.ring;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;

/// What a ring is made of. It takes `slots` times `slotBytes` of the device's memory, besides
/// `slots` times `hostBytes` of pinned memory for a GPU, and what its readers stage in.
///
/// @param slots batches that exist at once, the consumer's included; 2 or more
/// @param slotBytes a slot's size, which no filling may exceed; a multiple of
///     [PlanLimits#BLOCK_BYTES]
/// @param hostBytes the most that the CPU makes for one batch
/// @param transfer threads, path and cache policy of the reads, and the largest request: readers
///     that stage hold two buffers of its size, or of a slot's where that is less, each with 64 KiB
///     more for small reads. Its cancellation ends the ring; its progress is told to nobody
/// @param poison whether slots are overwritten, with bytes of 0xDB, when they are given back: a way
///     to find who reads what is no longer theirs
public record RingOptions(
    Device device,
    int slots,
    long slotBytes,
    long hostBytes,
    TransferOptions transfer,
    boolean poison) {
  /// One for the consumer and one to fill.
  public static final int LEAST_SLOTS = 2;

  /// The most slots that a ring may have.
  public static final int MOST_SLOTS = 64;

  public RingOptions {
    if (slots < LEAST_SLOTS || slots > MOST_SLOTS) {
      throw new MisuseException("slots must be 2 to " + MOST_SLOTS + ": " + slots);
    }
    if (slotBytes <= 0 || slotBytes % PlanLimits.BLOCK_BYTES != 0) {
      throw new MisuseException(
          "slot size must be a positive multiple of " + PlanLimits.BLOCK_BYTES + ": " + slotBytes);
    }
    if (hostBytes < 0 || hostBytes > slotBytes) {
      throw new MisuseException("hostBytes must be 0 to slotBytes: " + hostBytes);
    }
  }
}
