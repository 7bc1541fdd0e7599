// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDList;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;

/// Loads parts while earlier ones are used; two are in memory at a time. A part's load begins when most
/// of the one before is there, so that neither the start nor the end of a load leaves the disk or the
/// link idle. (Two that begin together also end together.) For one thread, but for [#mostlyLoaded].
final class PartsAhead implements AutoCloseable {
  /// Loads a part, and says when most of it is there.
  interface Loader {
    NDList load(int part, PartsAhead ahead);
  }

  /// In memory at once.
  private static final int DEPTH = 2;

  private final int parts;
  private final Loader loader;
  private final ExecutorService threads;
  private final Deque<Future<NDList>> begun = new ArrayDeque<>();
  private final List<CountDownLatch> mostlyLoaded;
  private int next;

  /// @param loader loads a part by its number, several at once on threads of this class; a
  ///     single part on the caller's
  PartsAhead(int parts, Loader loader) {
    this.parts = parts;
    this.loader = loader;
    mostlyLoaded = Stream.generate(() -> new CountDownLatch(1)).limit(parts).toList();
    threads =
        Executors.newFixedThreadPool(
            DEPTH, Thread.ofPlatform().daemon().name("gantry-part-", 0).factory());
  }

  /// The next part; the caller has closed the one before.
  ///
  /// @throws TransferException as the loader, or if the caller is interrupted
  NDList next() {
    if (parts == 1) {
      return loader.load(0, this);
    }
    while (next < parts && begun.size() < DEPTH) {
      int part = next++;
      begun.add(threads.submit(() -> load(part)));
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

  private NDList load(int part) throws InterruptedException {
    if (part > 0) {
      mostlyLoaded.get(part - 1).await();
    }
    try {
      return loader.load(part, this);
    } finally {
      mostlyLoaded(part);
    }
  }

  /// Lets the next part's load begin.
  void mostlyLoaded(int part) {
    mostlyLoaded.get(part).countDown();
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
