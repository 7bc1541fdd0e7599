// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDList;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BiFunction;
import java.util.stream.LongStream;

/// Loads parts while earlier parts are used. Two parts are being read at a time, so that requests
/// of one are under way while the other begins or ends; a third part may be in use. (Measured on
/// an H200: it is slower to begin the second part only when most of the first has arrived, and
/// also to read only one part while another is used.) Only one thread may use an instance.
final class PipelinedLoad implements AutoCloseable {
  /// How many parts are read at once.
  private static final int READ_AT_ONCE = 2;

  /// The arrays of a part, for each device.
  record Arrays(List<NDList> ofEach) implements AutoCloseable {
    @Override
    public void close() {
      Cleanup.forEach(ofEach, NDList::close);
    }
  }

  private final TransferOptions options;
  private final BiFunction<Integer, TransferOptions, Arrays> loader;
  private final long[] bytes;
  private final long[] done;
  private final long total;
  private final ExecutorService threads;
  private final Deque<Future<Arrays>> begun = new ArrayDeque<>();
  private int next;

  /// @param options the options of each part's transfer
  /// @param bytes the bytes of each part, without the bytes that reads add to fill whole blocks
  /// @param moreBytes the bytes that the load reads after the parts
  /// @param loader loads the part of a number, with options whose listener reports the progress of
  ///     the whole load. If there are several parts, threads of this class call the loader, two at
  ///     a time; a single part is loaded on the caller's thread
  PipelinedLoad(
      TransferOptions options,
      long[] bytes,
      long moreBytes,
      BiFunction<Integer, TransferOptions, Arrays> loader) {
    this.options = options;
    this.bytes = bytes.clone();
    this.loader = loader;
    done = new long[bytes.length];
    total = LongStream.of(bytes).sum() + moreBytes;
    threads =
        Executors.newFixedThreadPool(
            READ_AT_ONCE, Thread.ofPlatform().daemon().name("gantry-part-", 0).factory());
  }

  /// The next part; the caller has closed the one before.
  ///
  /// @throws TransferException if the loader throws it, or if the caller is interrupted
  Arrays next() {
    if (bytes.length == 1) {
      return load(0);
    }
    begin(READ_AT_ONCE);
    try {
      Arrays part = begun.element().get();
      // The part is removed from `begun` last, so that [#close] closes it if a step before fails.
      begin(1 + READ_AT_ONCE);
      begun.remove();
      return part;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("load", "tensors");
    } catch (ExecutionException e) {
      begun.remove();
      Cleanup.rethrow(e.getCause(), "a load failed");
      throw new IllegalStateException(e);
    }
  }

  /// @param most how many parts may be loading or waiting for [#next]
  private void begin(int most) {
    while (next < bytes.length && begun.size() < most) {
      int part = next++;
      begun.add(threads.submit(() -> load(part)));
    }
  }

  private Arrays load(int part) {
    return loader.apply(part, options.withProgress((now, _) -> tell(part, now)));
  }

  private synchronized void tell(int part, long now) {
    done[part] = Math.min(now, bytes[part]);
    options.progress().onProgress(LongStream.of(done).sum(), total);
  }

  /// Ends the running loads, and closes the arrays of loaded parts.
  @Override
  public void close() {
    // Tasks that have not begun are cancelled, since they would never end.
    threads.shutdownNow().forEach(load -> ((Future<?>) load).cancel(false));
    Cleanup.awaitEnd(threads);
    begun.stream()
        .filter(load -> load.state() == Future.State.SUCCESS)
        .forEach(load -> load.resultNow().close());
  }
}
