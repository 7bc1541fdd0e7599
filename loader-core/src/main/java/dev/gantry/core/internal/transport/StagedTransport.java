// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.StagingPool;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// `staged`: each reader thread fills one pinned buffer while the device copies from its other one.
///
/// @param context the context of the device that the slabs are on
/// @param buffers the share of a pool that the buffers come from
/// @param bufferBytes the size of a buffer: at least that of the largest read
/// @param sleepers whether readers sleep while they wait for a buffer, because its copies may wait long for their slab
/// @param replicas all devices that get the same bytes; null if no two do
public record StagedTransport(
    CudaContext context,
    StagingPool.Share buffers,
    long bufferBytes,
    boolean sleepers,
    @Nullable Replicas replicas) {
  /// Opens the buffers of one reader thread.
  ///
  /// @param wanted whether to wait if all buffers are in use, as for [StagingPool.Share#take]
  /// @return null if the caller would have to wait and `wanted` is false
  @Nullable Reader openReader(BooleanSupplier wanted) {
    StagingPool.Pair pair = buffers.take(bufferBytes, wanted);
    return pair == null ? null : new Reader(pair);
  }

  /// One thread's two buffers, and a queue of copies from them for each device that they go to. Reads that are smaller
  /// than a buffer share it if their copies are queued on the same stream. For one thread.
  final class Reader implements AutoCloseable {
    final StagingPool.Pair pair;

    /// The queue to the transport's own device.
    private final CopyQueue copies;

    /// All queues, [#copies] first; the others are opened when they are needed.
    private final List<CopyQueue> queues = new ArrayList<>(1);

    private final Replicas.@Nullable Copies replicated;
    private int turn;
    private long used;
    private CudaDriver.@Nullable Stream stream;
    private boolean awaited;

    private Reader(StagingPool.Pair pair) {
      this.pair = pair;
      this.replicated =
          replicas == null ? null : replicas.new Copies(context.device(), this::queue);
      this.copies =
          Cleanup.orUndo(() -> new CopyQueue(context, sleepers), () -> buffers.giveBack(pair));
      queues.add(copies);
    }

    private CopyQueue queue(Device.Cuda to) {
      for (CopyQueue queue : queues) {
        if (queue.context().device().equals(to)) {
          return queue;
        }
      }
      CopyQueue opened = new CopyQueue(CudaContext.of(to), sleepers);
      queues.add(opened);
      return opened;
    }

    /// Turns to the other buffer, after waiting for its copies, if this buffer has no room for the read.
    void makeRoom(Read read, Target target) {
      if (used + read.length() > bufferBytes || target.stream() != stream) {
        turnToTheOther(target);
      }
    }

    /// Reads into a buffer and queues the copy into `target`. The bytes may not have arrived yet when this returns: see
    /// [Target#ordered] and [#drain].
    ///
    /// @param direct whether to go past the page cache
    /// @param sums adds the bytes to checksums while they are in the buffer; null for none
    /// @return whether the bytes went past the page cache
    boolean read(
        SourceFile file, Read read, Target target, boolean direct, @Nullable KnownChecksums sums) {
      makeRoom(read, target);
      PinnedSlab buffer = turn == 0 ? pair.first() : pair.second();
      boolean went =
          HostTransport.read(
              file, read, buffer.segment().asSlice(used, read.length()), direct, sums);
      switch (target) {
        case Target.InSlab in ->
            copies.copyToDevice(
                in.slab().address() + read.slabOffset(), buffer.address() + used, read.required());
        case Target.OnEach(var slabs) ->
            Objects.requireNonNull(replicated).copy(slabs, read, buffer, used);
        case Target.Scattered(var pieces) -> pieces.forEach(piece -> copyRows(piece, buffer));
      }
      used += read.length();
      return went;
    }

    /// Copies a piece to its device. Pieces of one read may go to several devices from the same buffer.
    private void copyRows(Target.Piece piece, PinnedSlab buffer) {
      Copy2D rows = piece.rows();
      switch (piece.memory()) {
        case Memory.OnDevice memory -> {
          CopyQueue queue = queue(memory.device());
          long source = buffer.address() + used;
          if (rows.rows() == 1) {
            queue.copyToDevice(
                memory.address() + rows.target(), source + rows.source(), rows.width());
          } else {
            queue.copyToDevice(rows.shifted(source, memory.address()));
          }
        }
        case Memory.OnHost(MemorySegment segment) ->
            rows.run(buffer.segment().asSlice(used), segment);
      }
    }

    private void turnToTheOther(Target target) {
      finishBuffer();
      copies.turnTo(target.stream());
      stream = target.stream();
    }

    /// Marks the end of this buffer's copies, waits for the other buffer's copies, and then turns to it; does not turn
    /// if the wait fails.
    private void finishBuffer() {
      queues.forEach(queue -> queue.record(turn));
      passOn();
      queues.forEach(queue -> queue.await(turn ^ 1));
      turn ^= 1;
      used = 0;
    }

    private void passOn() {
      if (replicated != null) {
        replicated.queuePassed(copies);
      }
    }

    /// Waits until all copies are done.
    void drain() {
      passOn();
      queues.forEach(CopyQueue::drain);
    }

    /// Waits for running copies, even after a failure, and gives the buffers back.
    @Override
    public void close() {
      Cleanup.runAll(
          List.of(
              this::awaitBoth, this::passOn, () -> CopyQueue.closeAll(queues), this::leaveBuffers));
    }

    private void awaitBoth() {
      queues.forEach(queue -> queue.record(turn));
      for (CopyQueue queue : queues) {
        queue.await(turn ^ 1);
        queue.await(turn);
      }
      awaited = true;
    }

    private boolean comesToRest() {
      return queues.stream().map(queue -> queue.context().comesToRest()).toList().stream()
          .allMatch(Boolean::booleanValue);
    }

    private void leaveBuffers() {
      if (awaited || comesToRest()) {
        buffers.giveBack(pair);
      } else {
        buffers.abandon(pair);
      }
    }
  }
}
