package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.List;

/// How one slot is filled for one batch. What is read and what is made land first, each in a place
/// of its own; when all of it is there, rows are copied within the slot.
///
/// @param reads whose slab is 0: the slot
/// @param made by the CPU
/// @param copies whose targets overlap nothing that is read, made or copied from
/// @param label what the batch is, for whoever gets it
public record BatchPlan<T>(List<Read> reads, HostWrites made, List<SlotCopy> copies, T label) {
  public BatchPlan {
    reads = List.copyOf(reads);
    copies = List.copyOf(copies);
  }
}
