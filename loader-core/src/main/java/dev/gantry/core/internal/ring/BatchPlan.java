package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.List;

/// How to fill one slot with one batch: the reads and host writes first, each into its own place;
/// when all of them are done, the copies within the slot.
///
/// @param reads into slab 0, which is the slot
/// @param hostWrites what the CPU writes
/// @param copies whose targets overlap no read, no host write and no copy's source
/// @param label the source's description of the batch, handed to the consumer
public record BatchPlan<T>(
    List<Read> reads, HostWrites hostWrites, List<SlotCopy> copies, T label) {
  public BatchPlan {
    reads = List.copyOf(reads);
    copies = List.copyOf(copies);
  }
}
