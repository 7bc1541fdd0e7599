// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Hands out a job's items to its worker threads, each once and in order, until a thread fails or
/// the job is cancelled. Thread-safe.
public final class WorkQueue<T> {
  private final WorkerThreads workers;
  private final List<T> items;
  private final AtomicInteger next = new AtomicInteger();
  private final Queue<T> returned = new ConcurrentLinkedQueue<>();

  public WorkQueue(WorkerThreads workers, List<T> items) {
    this.workers = workers;
    this.items = List.copyOf(items);
  }

  /// The next item; null if none is left, or the job has failed.
  public @Nullable T take() {
    if (!workers.mayContinue()) {
      return null;
    }
    T item = returned.poll();
    if (item != null) {
      return item;
    }
    int index = next.getAndIncrement();
    return index < items.size() ? items.get(index) : null;
  }

  /// Returns an item that its thread cannot process to the queue, so that any thread can take it.
  public void putBack(T item) {
    returned.add(item);
  }

  /// Whether [#take] may give an item to a thread that asks now.
  public boolean hasMore() {
    return workers.mayContinue() && (next.get() < items.size() || !returned.isEmpty());
  }

  /// The number of all items, whether taken or not.
  public int size() {
    return items.size();
  }
}
