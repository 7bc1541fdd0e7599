// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Copies the bytes of reads from pinned buffers to their targets. It has a queue of copies for
/// each target device, and each queue has an event for every buffer. Only one thread may use an
/// instance at a time.
final class TargetCopies implements AutoCloseable {
  /// The queue to the transport's own device.
  private final CopyQueue own;

  private final StagedTransport staged;

  /// All queues, [#own] first. The queues to other devices are opened when they are needed.
  private final List<CopyQueue> queues = new ArrayList<>(1);

  private final Replicas.@Nullable Copies replicated;

  TargetCopies(StagedTransport staged) {
    Replicas replicas = staged.replicas();
    this.staged = staged;
    replicated =
        replicas == null ? null : replicas.new Copies(staged.context().device(), this::queue);
    own = open(staged.context());
    queues.add(own);
  }

  private CopyQueue queue(Device.Cuda to) {
    for (CopyQueue queue : queues) {
      if (queue.context().device().equals(to)) {
        return queue;
      }
    }
    CopyQueue opened = open(CudaContext.of(to));
    queues.add(opened);
    return opened;
  }

  private CopyQueue open(CudaContext context) {
    return new CopyQueue(context, staged.blockingWaits(), staged.kernels());
  }

  /// Does the same as [CopyQueue#turnTo] for the transport's own device.
  void turnTo(CudaDriver.@Nullable Stream stream) {
    own.turnTo(stream);
  }

  /// Queues the copies of a read's bytes into their target.
  ///
  /// @param at offset of the bytes in the buffer
  void copy(Read read, Target target, PinnedSlab buffer, long at) {
    switch (target) {
      case Target.InSlab in ->
          own.copyToDevice(in.slab().address() + read.slabOffset(), buffer, at, read.required());
      case Target.OnEach(var slabs) ->
          Objects.requireNonNull(replicated).copy(slabs, read, buffer, at);
      case Target.Scattered(var pieces) -> pieces.forEach(piece -> copyRows(piece, buffer, at));
    }
  }

  /// The slab on the transport's own device, out of `slabs`.
  Slab own(List<Slab> slabs) {
    return Objects.requireNonNull(replicated).own(slabs);
  }

  /// Queues copies of a read's bytes from the slab of the transport's own device to the slabs of
  /// the other devices.
  void passOn(List<Slab> slabs, Read read) {
    Objects.requireNonNull(replicated).pass(slabs, read);
    passOn();
  }

  /// Copies a piece to its device. Pieces of one read may go to several devices from the same buffer.
  private void copyRows(Target.Piece piece, PinnedSlab buffer, long at) {
    Copy2D rows = piece.rows();
    switch (piece.memory()) {
      case Memory.OnDevice memory -> {
        CopyQueue queue = queue(memory.device());
        if (rows.rows() == 1) {
          queue.copyToDevice(
              memory.address() + rows.target(), buffer, at + rows.source(), rows.width());
        } else {
          queue.copyToDevice(rows.shifted(buffer.address() + at, memory.address()));
        }
      }
      case Memory.OnHost(MemorySegment segment) -> rows.run(buffer.segment().asSlice(at), segment);
    }
  }

  /// Records `buffer`'s event after all copies so far, which are the copies from this buffer.
  void record(int buffer) {
    queues.forEach(queue -> queue.record(buffer));
  }

  /// Queues the copies from the transport's own device to the other devices. These copies do not
  /// use the buffers.
  void passOn() {
    if (replicated != null) {
      replicated.queuePassed(own);
    }
  }

  /// Waits until the copies that [#record] marked for a buffer are done.
  void await(int buffer) {
    queues.forEach(queue -> queue.await(buffer));
  }

  /// Whether the copies that [#record] marked for a buffer are done; does not wait for them.
  boolean isDone(int buffer) {
    return queues.stream().allMatch(queue -> queue.isDone(buffer));
  }

  /// Waits until all copies are done, except copies on the stream of a [Target].
  void drain() {
    passOn();
    queues.forEach(CopyQueue::drain);
  }

  /// Waits for all work on the devices, after another wait has failed.
  ///
  /// @return whether the wait succeeded on all devices; if not, copies may still be running
  boolean comesToRest() {
    return queues.stream().map(queue -> queue.context().comesToRest()).toList().stream()
        .allMatch(Boolean::booleanValue);
  }

  /// Gives back streams and events. Copies on the streams of [Target]s must be done before.
  @Override
  public void close() {
    CopyQueue.closeAll(queues);
  }
}
