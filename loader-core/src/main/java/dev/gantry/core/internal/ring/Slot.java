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

/// Memory for one batch at a time. Readers fill a slot, the consumer gets it and gives it back,
/// and readers fill it again.
///
/// A slot has one share of its slab. Not thread-safe: the ring's lock passes a slot from one
/// thread to the next. Only filling is done by several readers at once, which write different
/// parts.
abstract sealed class Slot permits HostSlot, DeviceSlot {
  /// The byte that overwrites slots which must not be read any more.
  static final byte POISON = (byte) 0xDB;

  private @Nullable Slab slab;

  /// How the slot's batch is gathered, set when the batch is planned and cleared when the consumer
  /// gets it; null if the batch is read.
  private @Nullable Gathering gathering;

  /// Allocates the slot's memory if it has none: before the first batch, and after [#giveBack]
  /// left the memory to arrays that still use it.
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

  /// The memory for host writes; the same for all writers of a batch.
  abstract MemorySegment hostMemory(HostWrites hostWrites);

  /// Runs one writer of a batch on this thread.
  void write(HostWrites hostWrites, HostWrites.HostWriter writer) {
    writer.write(hostMemory(hostWrites));
  }

  /// The memory that the batch's reads fill.
  abstract Target target();

  /// Sets how the next batch is gathered.
  final void gather(Gathering chosen) {
    gathering = chosen;
  }

  final @Nullable Gathering gathering() {
    return gathering;
  }

  /// Gathers on the calling thread if that takes less time than waking another thread.
  ///
  /// @return whether the batch was gathered
  boolean gatherAtOnce() {
    return false;
  }

  /// The readers' pieces of the gathering, unless [#gatherAtOnce] did it; empty if the device does it.
  List<BatchWork.Piece> gatherPieces() {
    return List.of();
  }

  /// Ends the gathering, whether it is complete or failed.
  final void endGathering() {
    Gathering ended = gathering;
    gathering = null;
    if (ended != null) {
      ended.close();
    }
  }

  /// Copies the host writes into the slot, then starts the plan's copies or its gathering. The
  /// ring calls this when all reads and host writes of a batch are done.
  ///
  /// @return copies for readers to do; empty if the device does the copies and the normalising
  abstract List<BatchWork.Piece> startCopies(BatchPlan<?> plan);

  /// Starts the normalising. The ring calls this when the batch's copies are done.
  ///
  /// @return normalising for readers to do; empty if the device does it
  List<BatchWork.Piece> startNormalizing(BatchPlan<?> plan) {
    return List.of();
  }

  /// Whether everything that the last [#startCopies] queued is done.
  abstract boolean isReady();

  /// Waits until [#isReady].
  abstract void awaitReady();

  /// Checks the batch after [#isReady], and ends the gathering.
  ///
  /// @throws dev.gantry.core.TransferException if the bytes are wrong
  /// @throws dev.gantry.core.MalformedFileException if a file was changed while the batch was
  ///     gathered
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
