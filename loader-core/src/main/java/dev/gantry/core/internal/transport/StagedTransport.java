// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.copies.CopyKernels;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.threads.ReaderGrowth;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// `staged`: each reader thread fills one pinned buffer while the device copies from its other one. Bytes of remote files
/// arrive in buffers of [RemoteStaging].
///
/// @param context the context of the device that the slabs are on
/// @param buffers the share of a pool that the buffers come from
/// @param bufferBytes the size of a buffer: at least that of the largest read
/// @param blockingWaits whether readers sleep, instead of spinning, while they wait for a buffer,
///     because its copies may wait long for the slab that they fill
/// @param kernels the kernels for small copies; null if each copy is queued on its own
/// @param replicas the devices that get the same bytes; null if no two devices do
public record StagedTransport(
    CudaContext context,
    StagingPool.Share buffers,
    long bufferBytes,
    boolean blockingWaits,
    @Nullable CopyKernels kernels,
    @Nullable Replicas replicas) {
  /// Opens the buffers of one reader thread.
  ///
  /// @param wanted asked while all buffers are in use: whether to go on waiting, as for
  ///     [StagingPool.Share#take]
  /// @param growth counts how often the reader waits for the device
  /// @return null if the caller would have to wait and `wanted` is false
  @Nullable Reader openReader(BooleanSupplier wanted, ReaderGrowth growth) {
    return buffers.take(bufferBytes, wanted, pair -> new Reader(pair, growth));
  }

  /// The two buffers of one reader thread, which alone may use an instance. Reads that are smaller
  /// than a buffer share it if their copies are queued on the same stream.
  final class Reader implements AutoCloseable {
    final StagingPool.Pair pair;
    private final TargetCopies copies;

    /// Made with the reader, so that closing it needs no heap.
    private final List<Runnable> closing;

    private final ReaderGrowth growth;
    private int turn;
    private long used;
    private CudaDriver.@Nullable Stream stream;
    private boolean awaited;

    private Reader(StagingPool.Pair pair, ReaderGrowth growth) {
      this.pair = pair;
      this.growth = growth;
      this.closing = List.of(this::awaitBoth, this::passOn, this::closeCopies, this::leaveBuffers);
      this.copies = new TargetCopies(StagedTransport.this);
    }

    /// Switches to the other buffer, after waiting for its copies, if the read does not fit this
    /// buffer or its copies go to another stream.
    void makeRoom(Read read, Target target) {
      if (used + read.length() > bufferBytes || target.stream() != stream) {
        turnToTheOther(target);
      }
    }

    /// Reads into a buffer and queues the copy into `target`. The copy may still be running when
    /// this returns: see [Target#stream] and [#drain].
    ///
    /// @param direct whether to go past the page cache
    /// @param sums adds the bytes to checksums while they are in the buffer; null if no checksums
    ///     are wanted
    /// @return whether the bytes went past the page cache
    boolean read(
        SourceFile file, Read read, Target target, boolean direct, @Nullable KnownChecksums sums) {
      makeRoom(read, target);
      PinnedSlab buffer = turn == 0 ? pair.first() : pair.second();
      boolean went =
          HostTransport.read(
              file, read, buffer.segment().asSlice(used, read.length()), direct, sums);
      copies.copy(read, target, buffer, used);
      used += read.length();
      return went;
    }

    /// Marks the end of this buffer's copies, waits for the other buffer's copies, and then
    /// switches to the other buffer; does not switch if the wait fails.
    private void turnToTheOther(Target target) {
      copies.record(turn);
      copies.passOn();
      growth.turned(() -> !copies.isDone(turn ^ 1));
      copies.await(turn ^ 1);
      turn ^= 1;
      used = 0;
      stream = target.stream();
      copies.turnTo(stream);
    }

    /// Waits until all copies are done.
    void drain() {
      copies.drain();
    }

    /// Waits for running copies, even after a failure, and gives the buffers back.
    @Override
    public void close() {
      Cleanup.runAll(closing);
    }

    private void awaitBoth() {
      copies.record(turn);
      copies.await(turn ^ 1);
      copies.await(turn);
      awaited = true;
    }

    private void passOn() {
      copies.passOn();
    }

    private void closeCopies() {
      copies.close();
    }

    private void leaveBuffers() {
      if (awaited || copies.comesToRest()) {
        buffers.giveBack(pair);
      } else {
        buffers.abandon(pair);
      }
    }
  }
}
