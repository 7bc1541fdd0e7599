// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.Location;
import java.util.Optional;
import java.util.function.Supplier;

/// Gives a ring the plans of its batches, in order.
///
/// The ring calls [#next] from one thread at a time, as many batches ahead of the consumer as it
/// has slots, and a few more where a kernel gathers them. An exception is thrown to the consumer in
/// place of that batch, and ends the ring.
public interface BatchPlanSource<T> extends AutoCloseable {
  /// Returns the next batch's plan, or empty at the end.
  Optional<BatchPlan<T>> next();

  /// Returns a supplier that makes the next batch's plan, or empty at the end; called instead of
  /// [#next] after a batch that was gathered. The plan may have gathers only, which are planned
  /// faster than reads. The ring calls the supplier once, on any thread, while other threads ask
  /// for later batches or make their plans. The supplier must not be called after [#close].
  default Optional<Supplier<BatchPlan<T>>> nextGathered() {
    return next().map(plan -> () -> plan);
  }

  /// Called when the ring opens a plan's file, or opens it again, before it reads from it; several
  /// threads may call this at once. An exception is thrown to the consumer in place of the batch
  /// that needs the file, and ends the ring.
  ///
  /// @param file the file, as the plan names it
  /// @param identity the identity of the file that was opened
  default void opened(Location file, Object identity) {}

  /// Called once, when the ring needs no more plans and no host writer runs any more; also if the
  /// ring could not be opened. Closing the ring or its session from this call throws
  /// [dev.gantry.core.MisuseException], since both wait for this call.
  @Override
  default void close() {}
}
