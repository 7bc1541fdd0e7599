// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.DevicePictures;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.convert.Converters;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A slot in memory of a CUDA device. The slot's own stream orders the work of one batch after
/// that of the batch before:
///
/// 1. [#orderAfterConsumer] makes the slot's stream wait for the consumer's queued work, has the
///    slot overwritten if options ask for poison, and records the event `free`;
/// 2. [#target] gives the stream to all readers, which queue their copies on it;
/// 3. [#write] has the device decode pictures after `free`; each picture is complete when its
///    writer returns;
/// 4. [#startCopies] queues the upload of the bytes that the CPU wrote, then the plan's copies or
///    the gathering kernel, then the normalising kernels, and records the event `ready`.
///
/// Each slot has a stream, rather than each reader, so that copies which wait for one slot do not
/// delay the copies into another slot. A device has 8 hardware queues for all streams, and a copy
/// that waits delays all copies behind it in its queue, also those of other streams.
///
/// The host waits for `ready` before it hands the slot to the consumer, so no host writer
/// overwrites the pinned memory while the device still copies from it.
final class DeviceSlot extends Slot {
  private static final int EVENTS = 3;

  private final CudaContext context;
  private final KernelPacer pacer;
  private final Converters converters;
  private final SlotKernels kernels;
  private final CudaDriver driver;
  private final long bytes;
  private final @Nullable PinnedSlab hostWritten;
  private final List<CudaDriver.Event> events;
  private final CudaDriver.Stream stream;
  private final CudaDriver.Event consumed;
  private final CudaDriver.Event free;
  private final CudaDriver.Event ready;

  /// The parts of the host writes that the device has written: the offset of each part, and its
  /// length in bytes. [#upload] leaves these parts out.
  private final ConcurrentSkipListMap<Long, Long> writtenOnDevice = new ConcurrentSkipListMap<>();

  /// Made with the slot, so that closing it needs no heap.
  private final List<Runnable> closing =
      List.of(this::awaitWork, this::endGathering, this::leave, this::releaseAtRest);

  /// Whether the last wait for the device has ended well.
  private boolean atRest;

  /// @param hostBytes the pinned memory for host writes, in bytes
  /// @param pacer the pacer that all slots of the ring share
  DeviceSlot(
      CudaContext context, long bytes, long hostBytes, KernelPacer pacer, Converters converters) {
    this.context = context;
    this.pacer = pacer;
    this.converters = converters;
    this.kernels = new SlotKernels(context, converters);
    this.driver = context.driver();
    this.bytes = bytes;
    List<CudaDriver.Event> taken = new ArrayList<>();
    Supplier<CudaDriver.Stream> take =
        () -> {
          while (taken.size() < EVENTS) {
            taken.add(context.streams().blockingSyncEvent());
          }
          return context.streams().stream();
        };
    Runnable undo =
        () -> {
          giveBack(taken);
          releasePinned();
        };
    this.hostWritten = hostBytes == 0 ? null : PinnedSlab.allocate(context, hostBytes);
    this.stream = Cleanup.orUndo(take, undo);
    this.events = taken;
    this.consumed = taken.get(0);
    this.free = taken.get(1);
    this.ready = taken.get(2);
  }

  @Override
  Slab newSlab() {
    return Cleanup.orUndo(
        () -> DeviceSlab.allocate(context, bytes, stream),
        slab -> {
          try (var _ = context.enter()) {
            driver.record(free, stream);
          }
          return slab;
        },
        Slab::release);
  }

  @Override
  MemorySegment hostMemory(HostWrites hostWrites) {
    return hostWritten == null
        ? MemorySegment.NULL
        : hostWritten.segment().asSlice(0, hostWrites.bytes());
  }

  @Override
  void write(HostWrites hostWrites, HostWrites.HostWriter writer) {
    MemorySegment memory = hostMemory(hostWrites);
    DevicePictures pictures =
        (jpeg, how, target) -> {
          long offset = target.address() - memory.address();
          if (offset < 0 || offset + target.byteSize() > memory.byteSize()) {
            return false;
          }
          long place = slab().address() + hostWrites.slotOffset() + offset;
          boolean decoded =
              converters
                  .pictures(context)
                  .toOptional()
                  .map(device -> device.decode(jpeg, how, place, free))
                  .orElse(false);
          if (decoded) {
            writtenOnDevice.put(offset, target.byteSize());
          }
          return decoded;
        };
    ScopedValue.where(DevicePictures.CURRENT, pictures).run(() -> writer.write(memory));
  }

  /// Queues copies of the bytes that the CPU wrote, and leaves out the parts that the device
  /// wrote.
  private void upload(HostWrites hostWrites) {
    long from = 0;
    for (Map.Entry<Long, Long> part : writtenOnDevice.entrySet()) {
      upload(hostWrites, from, part.getKey());
      from = part.getKey() + part.getValue();
    }
    upload(hostWrites, from, hostWrites.bytes());
    writtenOnDevice.clear();
  }

  private void upload(HostWrites hostWrites, long from, long end) {
    if (from < end) {
      long target = slab().address() + hostWrites.slotOffset() + from;
      long source = Objects.requireNonNull(hostWritten).address() + from;
      driver.copyToDevice(target, source, end - from, stream);
    }
  }

  @Override
  Target target() {
    return Target.ordered(slab(), stream, free);
  }

  @Override
  List<BatchWork.Piece> startCopies(BatchPlan<?> plan) {
    try (var _ = context.enter()) {
      HostWrites hostWrites = plan.hostWrites();
      if (hostWrites.bytes() > 0 && !hostWrites.writers().isEmpty()) {
        upload(hostWrites);
      }
      Gathering gathering = gathering();
      (gathering == null ? plan.copies() : plan.hostCopies()).forEach(this::queue);
      Runnable launch = kernels.prepare(plan, gathering, slab().address(), stream);
      if (gathering == null) {
        launch.run();
        driver.record(ready, stream);
      } else {
        pacer.run(driver, stream, ready, launch);
      }
    }
    return List.of();
  }

  private void queue(Copy2D copy) {
    long slot = slab().address();
    if (copy.isContiguous()) {
      driver.copyOnDevice(slot + copy.target(), slot + copy.source(), copy.bytes(), stream);
    } else if (Math.max(copy.sourcePitch(), copy.targetPitch()) <= CudaDriver.MAX_PITCH_BYTES) {
      driver.copyOnDevice(copy.shifted(slot, slot), stream);
    } else {
      // Rows that are farther apart than the greatest pitch are few, so each gets a copy of its
      // own.
      for (long row = 0; row < copy.rows(); row++) {
        driver.copyOnDevice(
            slot + copy.target() + row * copy.targetPitch(),
            slot + copy.source() + row * copy.sourcePitch(),
            copy.width(),
            stream);
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
    Cleanup.runAll(closing);
  }

  private void awaitWork() {
    try (var _ = context.enter()) {
      driver.synchronize(stream);
    }
    atRest = true;
  }

  private void leave() {
    if (atRest) {
      context.streams().giveBack(stream);
      giveBack(events);
    } else {
      // The device may still use them.
      context.streams().destroy(stream, events);
    }
  }

  private void giveBack(List<CudaDriver.Event> idle) {
    for (CudaDriver.Event event : idle) {
      context.streams().giveBack(event);
    }
  }

  /// Gives back the pinned memory. It stays allocated if the device does not come to rest.
  private void releaseAtRest() {
    if (atRest || context.comesToRest()) {
      releasePinned();
    }
  }

  private void releasePinned() {
    kernels.release();
    if (hostWritten != null) {
      hostWritten.release();
    }
  }
}
