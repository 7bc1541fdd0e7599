// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.batch.SlotCopy;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaDriver.Rows;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/// A slot in memory of a CUDA device. Its own stream orders one batch after the other:
///
/// 1. [#orderAfterConsumer]: the consumer's stream → `consumed` → the slot's stream (→ poison) →
///    `free`;
/// 2. [#target]: the copies of all readers;
/// 3. [#startCopies]: the upload of the host writes, and the plan's copies or the kernel that gathers →
///    `ready`.
///
/// There is a stream for each slot rather than for each reader, so that copies which wait for a slot
/// delay no other slot's. A device has 8 queues for all streams, and a waiting copy delays everything
/// behind it in its queue, whatever the stream.
///
/// The host waits for `ready` before it hands the slot over, so the pinned memory is not written
/// while the device copies from it.
final class DeviceSlot extends Slot {
  private static final long LEAST_TABLE_BYTES = 64 << 10;

  private final CudaContext context;
  private final CudaDriver driver;
  private final long bytes;
  private final @Nullable PinnedSlab hostWritten;
  private final List<CudaDriver.Event> events = new ArrayList<>();
  private final CudaDriver.Stream stream;
  private final CudaDriver.Event consumed;
  private final CudaDriver.Event free;
  private final CudaDriver.Event ready;

  /// Of those who queue requests on the stream.
  private final Queue<Runnable> checks = new ConcurrentLinkedQueue<>();

  private final Queue<Runnable> closers = new ConcurrentLinkedQueue<>();

  /// Of a kernel's pieces; null before the first.
  private @Nullable PinnedSlab table;

  /// @param hostBytes of pinned memory for host writes
  DeviceSlot(CudaContext context, long bytes, long hostBytes) {
    this.context = context;
    this.driver = context.driver();
    this.bytes = bytes;
    this.hostWritten = hostBytes == 0 ? null : PinnedSlab.allocate(context, hostBytes);
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
        close(created);
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
  MemorySegment hostMemory(HostWrites hostWrites) {
    return hostWritten == null
        ? MemorySegment.NULL
        : hostWritten.segment().asSlice(0, hostWrites.bytes());
  }

  @Override
  Target target() {
    return Target.ordered(slab(), new Target.Ordered(stream, free, this::attach));
  }

  private void attach(Runnable check, Runnable close) {
    checks.add(check);
    closers.add(close);
  }

  @Override
  void check() {
    Cleanup.runAll(List.copyOf(checks));
    super.check();
  }

  @Override
  List<BatchWork.Piece> startCopies(BatchPlan<?> plan) {
    try (var _ = context.enter()) {
      HostWrites hostWrites = plan.hostWrites();
      if (hostWrites.bytes() > 0 && !hostWrites.writers().isEmpty()) {
        long target = slab().address() + hostWrites.slotOffset();
        long source = Objects.requireNonNull(hostWritten).address();
        driver.copyToDevice(target, source, hostWrites.bytes(), stream);
      }
      Gathering gathering = gathering();
      if (gathering == null) {
        plan.copies().forEach(this::queue);
      } else {
        plan.hostCopies().forEach(this::queue);
        gathering.start(context, table(gathering.tableBytes()), slab().address(), stream);
      }
      driver.record(ready, stream);
    }
    return List.of();
  }

  /// The last kernel that used it has run, since its batch was handed over.
  private PinnedSlab table(long leastBytes) {
    PinnedSlab now = table;
    if (now == null || now.size() < leastBytes) {
      table = null;
      if (now != null) {
        now.release();
      }
      now = PinnedSlab.allocate(context, Math.max(LEAST_TABLE_BYTES, 2 * leastBytes));
      table = now;
    }
    return now;
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
  void orderAfterConsumer(boolean poison) {
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
  void close() {
    close(stream);
  }

  private void close(CudaDriver.@Nullable Stream created) {
    List<Runnable> actions = new ArrayList<>();
    if (created != null) {
      actions.add(() -> entered(() -> driver.synchronize(created)));
      actions.addAll(closers);
      actions.add(() -> entered(() -> driver.destroy(created)));
    }
    events.forEach(event -> actions.add(() -> entered(() -> driver.destroy(event))));
    actions.add(this::endGathering);
    if (table != null) {
      actions.add(table::release);
    }
    if (hostWritten != null) {
      actions.add(hostWritten::release);
    }
    Cleanup.runAll(actions);
  }

  private void entered(Runnable action) {
    try (var _ = context.enter()) {
      action.run();
    }
  }
}
