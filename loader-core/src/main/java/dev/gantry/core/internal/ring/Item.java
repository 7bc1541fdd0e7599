package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.plan.ReadPlan;

/// One piece of a batch's filling, which one reader does.
sealed interface Item {
  record Read(ReadPlan.Read read) implements Item {}

  record Make(HostWrites.HostWriter maker) implements Item {}

  /// A copy within a slot that the CPU makes.
  record Copy(Runnable copy) implements Item {}
}
