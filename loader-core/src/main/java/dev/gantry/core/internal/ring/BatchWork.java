// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A batch that readers are filling, or that is filled and waits for the consumer. The ring's lock
/// guards the fields that change.
final class BatchWork<T> {
  /// A part of a batch's work, which any reader can do.
  sealed interface Piece {
    /// A read into the slot.
    record Bring(Read read, Target target) implements Piece {}

    /// Work without a read: a host write, a copy or a gathering.
    record Work(Runnable work) implements Piece {}
  }

  /// The phases of a batch's pieces. A phase begins when all pieces of the phase before are done.
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

  /// @param plannedNanos when the source was asked for the plan, by `System.nanoTime`
  BatchWork(long number, Slot slot, BatchPlan<T> plan, long plannedNanos) {
    this.number = number;
    this.slot = slot;
    this.plan = plan;
    this.plannedNanos = plannedNanos;
    HostWrites hostWrites = plan.hostWrites();
    if (slot.gathering() == null) {
      Target target = slot.target();
      plan.reads().forEach(read -> pieces.add(new Piece.Bring(read, target)));
    } else {
      pieces.addAll(slot.gatherPieces());
    }
    hostWrites
        .writers()
        .forEach(writer -> pieces.add(new Piece.Work(() -> slot.write(hostWrites, writer))));
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

  /// Takes the next piece that no reader has taken; null if there is none.
  @Nullable Piece take() {
    return taken < pieces.size() ? pieces.get(taken++) : null;
  }

  /// Counts a piece as done.
  ///
  /// @return whether all pieces of the batch's phase are done now
  boolean isLastDone() {
    done++;
    return isAllDone();
  }

  boolean isAllDone() {
    return done == pieces.size();
  }

  /// Starts the next phase after all pieces of the current one are done. The thread that did the
  /// last piece calls this, without the ring's lock.
  ///
  /// @return the next pieces for readers; empty if only the device has work left
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

  /// Replaces the pieces, which are all done, with those that [#startNext] returned.
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

  /// Nanoseconds from asking the source for the plan until only the device had work left.
  long preparedNanos() {
    return filledNanos - plannedNanos;
  }
}
