// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// One of a ring's places for a batch, and the order of its uses: readers fill it, the consumer gets
/// it and gives it back, readers fill it again.
///
/// Holds one share of its slab. Not thread-safe: the ring's lock passes it from one thread to the
/// next; but several readers fill it together.
abstract sealed class Slot permits HostSlot, DeviceSlot {
  /// Overwrites slots that are no longer to be read.
  static final byte POISON = (byte) 0xDB;

  private @Nullable Slab slab;

  /// The gathering of the batch in the slot, from its plan until it is handed over.
  private @Nullable Gathering gathering;

  /// Gives the slot memory if it has none: at first, and after [#giveBack] left it to others.
  final void allocateIfNeeded() {
    if (slab == null) {
      slab = newSlab();
    }
  }

  /// @throws dev.gantry.core.TransferException if the host or the device has too little memory
  abstract Slab newSlab();

  final Slab slab() {
    return Objects.requireNonNull(slab, "a slot without memory");
  }

  /// The memory that host writers write to; the same for all writers of a batch.
  abstract MemorySegment hostMemory(HostWrites hostWrites);

  /// The place where reads put their bytes.
  abstract Target target();

  /// The next batch is fetched so.
  final void gather(Gathering chosen) {
    gathering = chosen;
  }

  final @Nullable Gathering gathering() {
    return gathering;
  }

  /// Gathers on this thread what takes less time than waking another one.
  ///
  /// @return whether that was done
  boolean gatherAtOnce() {
    return false;
  }

  /// What readers do for the gathering, unless [#gatherAtOnce] did it; empty where the device does it.
  List<BatchWork.Piece> gatherPieces() {
    return List.of();
  }

  /// Ends the gathering, which is done or will not be.
  final void endGathering() {
    Gathering ended = gathering;
    gathering = null;
    if (ended != null) {
      ended.close();
    }
  }

  /// Called when all reads and host writes of a batch are done: starts the plan's copies or its
  /// gathering, after moving the host writes into the slot.
  ///
  /// @return copies that readers have to do; empty if the device does all of them, and normalises
  abstract List<BatchWork.Piece> startCopies(BatchPlan<?> plan);

  /// Called when the copies are done, too.
  ///
  /// @return what readers have to normalise
  List<BatchWork.Piece> startNormalizing(BatchPlan<?> plan) {
    return List.of();
  }

  /// Whether all that the last [#startCopies] queued is done.
  abstract boolean isReady();

  /// Waits until [#isReady].
  abstract void awaitReady();

  /// Looks at the results of what is ready, and ends its gathering.
  ///
  /// @throws dev.gantry.core.TransferException if the bytes are not right
  /// @throws dev.gantry.core.MalformedFileException if a file was changed meanwhile
  void check() {
    if (gathering != null) {
      gathering.requireUnchanged();
      endGathering();
    }
  }

  /// Takes the slot back from the consumer, whose queued work on the device may still read it.
  ///
  /// @return whether arrays still use its memory, which the slot then leaves to them
  final boolean giveBack(boolean poison) {
    if (slab().isShared()) {
      release();
      return true;
    }
    orderAfterConsumer(poison);
    return false;
  }

  /// Orders the next batch's writes after all work that the consumer has queued.
  abstract void orderAfterConsumer(boolean poison);

  /// Releases the slot's share of its memory.
  final void release() {
    Slab held = slab;
    if (held != null) {
      slab = null;
      held.release();
    }
  }

  /// Waits for queued work, and frees all but the slab.
  abstract void close();
}
