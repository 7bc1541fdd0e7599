package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaDriver.Rows;
import dev.gantry.core.internal.transport.Target;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A slot in memory of a CUDA device. One filling after the other is ordered by the slot's stream:
///
/// 1. [#settle]: the consumer's stream → `consumed` → the slot's stream (→ poison) → `free`;
/// 2. [#target]: the copies of all readers;
/// 3. [#finish]: what was made, and the copies → `ready`.
///
/// A stream for each slot, and none for each reader: copies that are held until a slot is free hold
/// up nothing else then. A device has 8 queues for all streams, and a copy that waits in one of
/// them has waiting what comes behind it, of whatever stream.
///
/// The host waits only for `ready`, and before it hands the slot over; so nobody touches the pinned
/// memory while it is copied from.
final class DeviceSlot extends Slot {
  private final CudaContext context;
  private final CudaDriver driver;
  private final long bytes;
  private final @Nullable PinnedSlab made;
  private final List<CudaDriver.Event> events = new ArrayList<>();
  private final CudaDriver.Stream stream;
  private final CudaDriver.Event consumed;
  private final CudaDriver.Event free;
  private final CudaDriver.Event ready;

  /// @param madeBytes of pinned memory for what the CPU makes
  DeviceSlot(CudaContext context, long bytes, long madeBytes) {
    this.context = context;
    this.driver = context.driver();
    this.bytes = bytes;
    this.made = madeBytes == 0 ? null : PinnedSlab.allocate(context, madeBytes);
    CudaDriver.Stream created = null;
    boolean complete = false;
    try (var _ = context.enter()) {
      created = driver.createStream();
      consumed = event();
      free = event();
      ready = event();
      complete = true;
    } finally {
      if (!complete) {
        dismantle(created);
      }
    }
    this.stream = created;
  }

  private CudaDriver.Event event() {
    CudaDriver.Event event = driver.createSleepersEvent();
    events.add(event);
    return event;
  }

  @Override
  Slab allocate() {
    return DeviceSlab.allocate(context, bytes);
  }

  @Override
  MemorySegment made(HostWrites wanted) {
    return made == null ? MemorySegment.NULL : made.segment().asSlice(0, wanted.bytes());
  }

  @Override
  Target target() {
    return Target.ordered(slab(), stream, free);
  }

  @Override
  List<Item> finish(BatchPlan<?> filling) {
    try (var _ = context.enter()) {
      HostWrites what = filling.hostWrites();
      if (what.bytes() > 0 && !what.writers().isEmpty()) {
        long target = slab().address() + what.slotOffset();
        long source = Objects.requireNonNull(made).address();
        driver.copyToDevice(target, source, what.bytes(), stream);
      }
      filling.copies().forEach(this::queue);
      driver.record(ready, stream);
    }
    return List.of();
  }

  private void queue(SlotCopy copy) {
    long from = slab().address() + copy.from();
    long to = slab().address() + copy.to();
    if (copy.isContiguous()) {
      driver.copyOnDevice(to, from, copy.rowBytes() * copy.rows(), stream);
    } else if (Math.max(copy.fromPitch(), copy.toPitch()) <= Rows.MOST_PITCH_BYTES) {
      driver.copyOnDevice(
          new Rows(to, copy.toPitch(), from, copy.fromPitch(), copy.rowBytes(), copy.rows()),
          stream);
    } else {
      // Rows so far apart are few.
      for (long row = 0; row < copy.rows(); row++) {
        driver.copyOnDevice(
            to + row * copy.toPitch(), from + row * copy.fromPitch(), copy.rowBytes(), stream);
      }
    }
  }

  @Override
  boolean isReady() {
    try (var _ = context.enter()) {
      return driver.isDone(ready);
    }
  }

  @Override
  void awaitReady() {
    try (var _ = context.enter()) {
      driver.synchronize(ready);
    }
  }

  @Override
  void settle(boolean poison) {
    try (var _ = context.enter()) {
      driver.record(consumed, CudaDriver.Stream.DEFAULT);
      driver.await(stream, consumed);
      if (poison) {
        driver.fill(slab().address(), POISON, bytes, stream);
      }
      driver.record(free, stream);
    }
  }

  @Override
  void dismantle() {
    dismantle(stream);
  }

  private void dismantle(CudaDriver.@Nullable Stream created) {
    List<Runnable> actions = new ArrayList<>();
    if (created != null) {
      actions.add(() -> entered(() -> driver.synchronize(created)));
      actions.add(() -> entered(() -> driver.destroy(created)));
    }
    events.forEach(event -> actions.add(() -> entered(() -> driver.destroy(event))));
    if (made != null) {
      actions.add(made::release);
    }
    Cleanup.runAll(actions);
  }

  private void entered(Runnable action) {
    try (var _ = context.enter()) {
      action.run();
    }
  }
}
