// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Writes several shards at once in the background. It owns the slabs in which shards are filled: one more
/// than there are writers, so that one can be filled while the others are written.
///
/// After a failure it writes nothing more. Not thread-safe.
final class ShardQueue {
  private final long slabBytes;
  private final ExecutorService writers;
  private final List<HostSlab> slabs = new ArrayList<>();
  private final int mostSlabs;
  private final BlockingQueue<HostSlab> idle;

  /// The shards that are on the disk, by number.
  private final NavigableMap<Integer, Shard> written = new ConcurrentSkipListMap<>();

  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private boolean told;

  /// @param threads how many shards are written at once
  /// @param slabBytes the size of a full shard
  ShardQueue(int threads, long slabBytes) {
    this.slabBytes = Math.max(1, slabBytes);
    mostSlabs = threads + 1;
    idle = new ArrayBlockingQueue<>(mostSlabs);
    writers =
        Executors.newFixedThreadPool(
            threads, Thread.ofPlatform().name("gantry-shard-writer-", 0).daemon().factory());
  }

  /// Takes a slab of a full shard's size with undefined contents. Waits while all slabs are in use.
  ///
  /// @throws TransferException if a write failed and no call has thrown its failure yet, if there is no
  ///     memory, or if the caller is interrupted
  HostSlab take() {
    throwFailure();
    HostSlab slab = idle.poll();
    if (slab == null && slabs.size() < mostSlabs) {
      slab = Admission.slab(slabBytes);
      slabs.add(slab);
    }
    try {
      slab = slab == null ? idle.take() : slab;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("write", "a sample");
    }
    throwFailure();
    return slab;
  }

  /// Queues a shard for writing; its slab returns to this queue afterwards.
  void submit(int number, HostSlab slab, Supplier<Shard> write) {
    writers.execute(() -> {
      try {
        if (failure.get() == null) {
          written.put(number, write.get());
        }
      } catch (RuntimeException | Error e) {
        failure.compareAndSet(null, e);
      } finally {
        idle.add(slab);
      }
    });
  }

  /// Throws the failure of a write, unless an earlier call has thrown it.
  void throwFailure() {
    Throwable failed = failure.get();
    if (failed != null && !told) {
      told = true;
      Cleanup.rethrow(failed, "a writer failed");
    }
  }

  /// Waits until all shards are on the disk, and frees the slabs.
  ///
  /// @return the shards, by number
  /// @throws TransferException if a write failed and no call has thrown its failure yet, or if the caller
  ///     is interrupted, which ends the writes early
  List<Shard> finish() {
    writers.close();
    freeSlabs();
    if (Thread.currentThread().isInterrupted()) {
      throw WorkerThreads.interrupted("write", "the last shards");
    }
    throwFailure();
    return List.copyOf(written.values());
  }

  /// Ends the writes under way, and frees the slabs. Idempotent.
  void abandon() {
    writers.shutdownNow();
    writers.close();
    freeSlabs();
  }

  private void freeSlabs() {
    idle.clear();
    try {
      Slab.releaseAll(slabs);
    } finally {
      slabs.clear();
    }
  }
}
