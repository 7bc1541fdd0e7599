// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDList;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
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

/// Loads parts while earlier ones are used. Two are being read at a time, so that one load's requests go on where the
/// other's begin or end, and a third one may be in use. (Measured on an H200: to begin the second one when most of the
/// first is there is slower, as is to read only one while another is used.) For one thread.
final class PipelinedLoad implements AutoCloseable {
  /// How many parts are read at once.
  private static final int READ_AT_ONCE = 2;

  /// The arrays of a part, for each device.
  record Arrays(List<NDList> ofEach) implements AutoCloseable {
    @Override
    public void close() {
      Cleanup.runAll(ofEach.stream().<Runnable>map(each -> each::close).toList());
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

  /// @param options of each part
  /// @param bytes of each part; a part's reads take the blocks at its edges, too, which do not count
  /// @param moreBytes that the load reads after the parts
  /// @param loader takes a part's number, and options that tell the whole load's listener of its progress. It
  ///     loads several parts at once on threads of this class; a single one on the caller's
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
  /// @throws TransferException as the loader, or if the caller is interrupted
  Arrays next() {
    if (bytes.length == 1) {
      return load(0);
    }
    begin(READ_AT_ONCE);
    try {
      Arrays part = begun.element().get();
      // The part is among those that `close` closes until nothing can fail any more.
      begin(1 + READ_AT_ONCE);
      begun.remove();
      return part;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new TransferException("load", "tensors", new Failure.Cancelled());
    } catch (ExecutionException e) {
      begun.remove();
      Cleanup.rethrow(e.getCause(), "a load failed");
      throw new IllegalStateException(e);
    }
  }

  /// @param most how many parts may be under way or wait to be taken
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

  /// Ends loads that run, and closes what they loaded.
  @Override
  public void close() {
    // Cancels tasks that have not begun: they would never end.
    threads.shutdownNow().forEach(load -> ((Future<?>) load).cancel(false));
    Cleanup.awaitEnd(threads);
    begun.stream()
        .filter(load -> load.state() == Future.State.SUCCESS)
        .forEach(load -> load.resultNow().close());
  }
}
