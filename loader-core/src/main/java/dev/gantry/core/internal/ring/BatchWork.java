package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A batch that was asked for and not handed over yet. All that changes is guarded by the ring's
/// lock.
final class BatchWork<T> {
  private final long number;
  private final Slot slot;
  private final BatchPlan<T> filling;
  private final long askedNanos;
  private final long bytes;
  private List<Item> items;
  private int taken;
  private int done;
  private boolean copying;
  private long filledNanos;
  private boolean filled;

  /// @param askedNanos when the source was asked for it
  BatchWork(long number, Slot slot, BatchPlan<T> filling, long askedNanos) {
    this.number = number;
    this.slot = slot;
    this.filling = filling;
    this.askedNanos = askedNanos;
    this.items = new ArrayList<>(filling.reads().size() + filling.hostWrites().writers().size());
    filling.reads().forEach(read -> items.add(new Item.Read(read)));
    filling.hostWrites().writers().forEach(maker -> items.add(new Item.Make(maker)));
    this.bytes =
        filling.hostWrites().bytes() + filling.reads().stream().mapToLong(Read::length).sum();
  }

  long number() {
    return number;
  }

  Slot slot() {
    return slot;
  }

  BatchPlan<T> filling() {
    return filling;
  }

  /// The next piece that nobody has taken, or null.
  @Nullable Item take() {
    return taken < items.size() ? items.get(taken++) : null;
  }

  /// Counts a piece that is done.
  ///
  /// @return whether it was the last of them
  boolean isLastDone() {
    done++;
    return isAllDone();
  }

  boolean isAllDone() {
    return done == items.size();
  }

  /// Whether the copies are what is being done, or were.
  boolean isCopying() {
    return copying;
  }

  /// What is still to be done after all that was read and made.
  void goOnCopying(List<Item> copies) {
    copying = true;
    items = copies;
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

  /// From the asking until nothing was left to do but for the device.
  long preparedNanos() {
    return filledNanos - askedNanos;
  }

  /// What was read and made, in bytes.
  long bytes() {
    return bytes;
  }
}
