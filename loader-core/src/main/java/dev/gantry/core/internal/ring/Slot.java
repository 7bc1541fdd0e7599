package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.transport.Target;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// One of a ring's places for a batch, and what orders its uses: filled by readers, handed over,
/// given back, filled again.
///
/// Holds one share of its slab. Not thread-safe: the ring's lock hands it from one to the next; but
/// readers fill it together.
abstract sealed class Slot permits HostSlot, DeviceSlot {
  /// What slots are overwritten with that nobody may read any more.
  static final byte POISON = (byte) 0xDB;

  private @Nullable Slab slab;

  /// Allocates the slot's memory.
  abstract Slab allocate();

  /// Takes memory where there is none: at first, and after it was left to those who still used it.
  final void prepare() {
    if (slab == null) {
      slab = allocate();
    }
  }

  final Slab slab() {
    return Objects.requireNonNull(slab, "a slot without memory");
  }

  /// Where the CPU makes what it makes; the same for all writers of a filling.
  abstract MemorySegment made(HostWrites made);

  /// Where readers bring what they read.
  abstract Target target();

  /// When all is read and made: brings what was made into its place, and makes the copies.
  ///
  /// @return what readers have yet to do of that, or nothing
  abstract List<Item> finish(BatchPlan<?> filling);

  /// Whether the last [#finish] has come to pass.
  abstract boolean isReady();

  /// Waits until the last [#finish] has come to pass: then anybody may read.
  abstract void awaitReady();

  /// The consumer needs the slot no longer, once what was queued by now is done.
  ///
  /// @return whether others still hold shares of its memory: then it is left to them
  final boolean giveBack(boolean poison) {
    if (slab().isShared()) {
      release();
      return true;
    }
    settle(poison);
    return false;
  }

  /// Has the next filling come after all that the consumer has queued.
  abstract void settle(boolean poison);

  /// Gives the share of the memory back.
  final void release() {
    Slab held = slab;
    if (held != null) {
      slab = null;
      held.release();
    }
  }

  /// Waits for what is under way, and frees all but the slab.
  abstract void dismantle();
}
