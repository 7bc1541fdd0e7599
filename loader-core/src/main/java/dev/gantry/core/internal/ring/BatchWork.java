// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.transport.OnDemandTransfer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A batch that is being filled, or waits to be handed over. The ring's lock guards all that
/// changes.
final class BatchWork<T> {
  /// A read, host write or copy, which any reader can do.
  @FunctionalInterface
  interface Piece {
    void run(OnDemandTransfer.Reader reader);
  }

  /// What its pieces do: those of one phase are done before those of the next begin.
  private enum Phase {
    BRING,
    COPY,
    NORMALIZE
  }

  private final long number;
  private final Slot slot;
  private final BatchPlan<T> plan;
  private final long plannedNanos;
  private List<Piece> pieces = new ArrayList<>();
  private int taken;
  private int done;
  private Phase phase = Phase.BRING;
  private long filledNanos;
  private boolean filled;

  /// @param plannedNanos when the source was asked for the plan
  BatchWork(long number, Slot slot, BatchPlan<T> plan, long plannedNanos) {
    this.number = number;
    this.slot = slot;
    this.plan = plan;
    this.plannedNanos = plannedNanos;
    HostWrites hostWrites = plan.hostWrites();
    if (slot.gathering() == null) {
      plan.reads().forEach(read -> pieces.add(reader -> reader.read(read, slot.target())));
    } else {
      pieces.addAll(slot.gatherPieces());
    }
    hostWrites
        .writers()
        .forEach(writer -> pieces.add(_ -> writer.write(slot.hostMemory(hostWrites))));
  }

  long number() {
    return number;
  }

  Slot slot() {
    return slot;
  }

  BatchPlan<T> plan() {
    return plan;
  }

  /// The next piece that no reader has taken, or null.
  @Nullable Piece take() {
    return taken < pieces.size() ? pieces.get(taken++) : null;
  }

  /// Counts a piece that is done.
  ///
  /// @return whether it was the last of them
  boolean isLastDone() {
    done++;
    return isAllDone();
  }

  boolean isAllDone() {
    return done == pieces.size();
  }

  /// Starts what follows the pieces, all of which are done. For the thread that did the last one, without the
  /// ring's lock.
  ///
  /// @return what readers have to do then; empty if only the device has work left
  List<Piece> startNext() {
    List<Piece> next = List.of();
    while (next.isEmpty() && phase != Phase.NORMALIZE) {
      if (phase == Phase.BRING) {
        phase = Phase.COPY;
        next = slot.startCopies(plan);
      } else {
        phase = Phase.NORMALIZE;
        next = slot.startNormalizing(plan);
      }
    }
    return next;
  }

  /// Replaces the pieces by those that [#startNext] gave.
  void replace(List<Piece> next) {
    pieces = next;
    taken = 0;
    done = 0;
  }

  void setFilled() {
    filled = true;
    filledNanos = System.nanoTime();
  }

  boolean isFilled() {
    return filled;
  }

  /// From asking the source until only the device had work left.
  long preparedNanos() {
    return filledNanos - plannedNanos;
  }
}
