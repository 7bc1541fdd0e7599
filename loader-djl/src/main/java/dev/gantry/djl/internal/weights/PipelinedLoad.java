// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDList;
import dev.gantry.core.Failure;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.LoadMemory;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;

/// Loads parts while earlier ones are used; two are in memory at a time. While one is awaited both are
/// being read, so that one load's requests go on where the other's begin or end. (Measured on an H200:
/// to begin the second one when most of the first is there is slower.) For one thread.
final class PipelinedLoad implements AutoCloseable {
  /// In memory at once.
  private static final int DEPTH = 2;

  /// The memory that a part takes.
  ///
  /// @param load while it is loaded, and until its user closes it
  /// @param made what its user makes of it
  /// @param stays of both, when it is closed
  record Part(LoadMemory load, MemoryUse made, MemoryUse stays) {}

  /// The most memory that parts take which are loaded so.
  static MemoryUse most(List<Part> parts) {
    MemoryUse most = MemoryUse.NOTHING;
    MemoryUse stayed = MemoryUse.NOTHING;
    for (int i = 0; i < parts.size(); i++) {
      Part part = parts.get(i);
      MemoryUse beside = stayed;
      for (Part next : parts.subList(i + 1, Math.min(parts.size(), i + DEPTH))) {
        beside = beside.plus(next.load().most());
      }
      most = most.max(beside.plus(part.load().most()));
      most = most.max(beside.plus(part.load().stays()).plus(part.made()));
      stayed = stayed.plus(part.stays());
    }
    return most;
  }

  private final int parts;
  private final IntFunction<NDList> loader;
  private final ExecutorService threads;
  private final Deque<Future<NDList>> begun = new ArrayDeque<>();
  private int next;

  /// @param loader loads a part by its number, several at once on threads of this class; a
  ///     single part on the caller's
  PipelinedLoad(int parts, IntFunction<NDList> loader) {
    this.parts = parts;
    this.loader = loader;
    threads =
        Executors.newFixedThreadPool(
            DEPTH, Thread.ofPlatform().daemon().name("gantry-part-", 0).factory());
  }

  /// The next part; the caller has closed the one before.
  ///
  /// @throws TransferException as the loader, or if the caller is interrupted
  NDList next() {
    if (parts == 1) {
      return loader.apply(0);
    }
    while (next < parts && begun.size() < DEPTH) {
      int part = next++;
      begun.add(threads.submit(() -> loader.apply(part)));
    }
    try {
      NDList arrays = begun.element().get();
      begun.remove();
      return arrays;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new TransferException("load", "tensors", new Failure.Cancelled());
    } catch (ExecutionException e) {
      begun.remove();
      throw unwrapped(Objects.requireNonNull(e.getCause()));
    }
  }

  private static RuntimeException unwrapped(Throwable failure) {
    return switch (failure) {
      case RuntimeException exception -> exception;
      case Error error -> throw error;
      default -> new IllegalStateException(failure);
    };
  }

  /// Ends loads that run, and closes what they loaded.
  @Override
  public void close() {
    // Those that have not begun would never end.
    threads.shutdownNow().forEach(load -> ((Future<?>) load).cancel(false));
    boolean interrupted = false;
    for (Future<NDList> load : begun) {
      boolean done = false;
      while (!done) {
        try {
          load.get().close();
          done = true;
        } catch (InterruptedException _) {
          interrupted = true;
        } catch (ExecutionException | CancellationException _) {
          done = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
