// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cache.CachedFile.Turn;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A remote file of which the cache has some blocks. Reads fetch each missing block once and write
/// it to the disk. Thread-safe.
final class FillingFile implements FileCache.Filling {
  /// How long to wait before trying again to take a block that another process fetches.
  private static final long RETRY_MILLIS = 2;

  private static final CompletableFuture<Void> DONE = CompletableFuture.completedFuture(null);

  private final RemoteCache cache;
  private final StoredFile remote;
  private final CachedFile cached;
  private final CacheEntry entry;
  private final WholeFile.Version version;
  private final Supplier<StoredFile> open;

  /// @param remote the file in its store; [#close] closes it
  /// @param cached the file's state in the cache; [#close] ends this use of it
  /// @param open opens the remote file again
  FillingFile(
      RemoteCache cache,
      StoredFile remote,
      CachedFile cached,
      WholeFile.Version version,
      Supplier<StoredFile> open) {
    this.cache = cache;
    this.remote = remote;
    this.cached = cached;
    this.entry = cached.entry();
    this.version = version;
    this.open = open;
  }

  @Override
  public long size() {
    return version.size();
  }

  @Override
  public Object identity() {
    return version.identity();
  }

  @Override
  public Optional<Instant> modified() {
    return version.modified();
  }

  @Override
  public String version() {
    return version.text();
  }

  @Override
  public int requestsAtOnce() {
    return remote.requestsAtOnce();
  }

  @Override
  public boolean isWhole() {
    return cached.isWhole();
  }

  @Override
  public LocalFile local(CachePolicy policy) {
    return cache.local(cached, policy, version, open);
  }

  @Override
  public void read(ReadRequest request) {
    long length = request.target().byteSize();
    if (length == 0) {
      request.completed();
      return;
    }
    int first = (int) (request.offset() / CacheEntry.BLOCK_BYTES);
    int end = CacheEntry.blocks(request.offset() + length);
    var _ =
        new Reading(request)
            .bring(first, end)
            .whenComplete((_, failure) -> {
              if (failure == null) {
                request.completed();
              } else {
                request.failed(failure instanceof CompletionException ? cause(failure) : failure);
              }
            });
  }

  private static Throwable cause(Throwable failure) {
    return failure.getCause() == null ? failure : failure.getCause();
  }

  @Override
  public void close() {
    try {
      remote.close();
    } finally {
      cache.leave(cached);
    }
  }

  /// One read of this file.
  private final class Reading {
    private final ReadRequest request;
    private final long from;
    private final long to;

    Reading(ReadRequest request) {
      this.request = request;
      this.from = request.offset();
      this.to = from + request.target().byteSize();
    }

    /// Fills the target with the wanted bytes of some blocks.
    ///
    /// @return a future that is completed, also by a failure, when nothing touches the read's
    ///     target any more
    CompletableFuture<Void> bring(int first, int end) {
      List<CompletableFuture<Void>> parts = new ArrayList<>();
      Turn[] turns = new Turn[end - first];
      Arrays.fill(turns, Turn.WAIT);
      parts.add(
          begun(() -> {
            if (request.cancellation().isCancelled()) {
              throw new TransferException(
                  "read", version.file().toString(), new Failure.Cancelled());
            }
            for (int i = 0; i < turns.length; i++) {
              turns[i] = turn(first + i, parts);
            }
            return DONE;
          }));
      // Missing blocks are requested first, so that they are under way while this thread reads the
      // other blocks from the disk.
      for (int i = 0; i < turns.length; ) {
        Turn turn = turns[i];
        int begin = first + i;
        do {
          i++;
        } while (i < turns.length && turns[i] == turn && isOneRequest(turn, first + i));
        int next = first + i;
        if (turn == Turn.FETCH) {
          parts.add(begun(() -> fetch(begin, next)));
        } else if (turn == Turn.PASS) {
          parts.add(begun(() -> pass(begin, next)));
        }
      }
      for (int i = 0; i < turns.length; i++) {
        int block = first + i;
        if (turns[i] == Turn.GOOD) {
          parts.add(begun(() -> readGood(block)));
        } else if (turns[i] == Turn.CHECK) {
          parts.add(begun(() -> check(block)));
        }
      }
      return CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new));
    }

    private static CompletableFuture<Void> begun(Supplier<CompletableFuture<Void>> part) {
      try {
        return part.get();
      } catch (RuntimeException | Error e) {
        return CompletableFuture.failedFuture(e);
      }
    }

    /// Whether one request may fetch a block together with the block before it, which has the same
    /// turn. Blocks that go into the cache are fetched together only if this read wants both of
    /// them whole.
    private boolean isOneRequest(Turn turn, int block) {
      return turn == Turn.PASS || (turn == Turn.FETCH && isWithin(block - 1) && isWithin(block));
    }

    /// @param parts receives the future of a later attempt if this read has to wait for the block
    private Turn turn(int block, List<CompletableFuture<Void>> parts) {
      Turn turn = Turn.PASS;
      try {
        turn = cached.take(block, cache.mayPut());
      } catch (TransferException e) {
        cache.refuse(e);
      }
      if ((turn == Turn.WAIT || turn == Turn.WAIT_FOR_OTHERS) && cache.isClosing()) {
        throw new TransferException(
            "read",
            version.file().toString(),
            new Failure.Remote(0, "the session was closed while another read fetched this block"));
      }
      if (turn == Turn.WAIT) {
        parts.add(bringAfter(cached.settled(block), block));
      } else if (turn == Turn.WAIT_FOR_OTHERS) {
        parts.add(bringLater(block));
      }
      return turn;
    }

    private CompletableFuture<Void> bringLater(int block) {
      return bringAfter(
          new CompletableFuture<Void>()
              .completeOnTimeout(null, RETRY_MILLIS, TimeUnit.MILLISECONDS),
          block);
    }

    /// Tries a block again when `time` is completed, which also happens when this read is
    /// cancelled or the cache is closed.
    private CompletableFuture<Void> bringAfter(CompletableFuture<Void> time, int block) {
      Runnable forget = request.cancellation().whenCancelled(() -> time.complete(null));
      Runnable forgetClosing = cache.whenClosing(() -> time.complete(null));
      return time.thenRun(forget)
          .thenRun(forgetClosing)
          .thenComposeAsync(_ -> bring(block, block + 1), cache::run);
    }

    private long start(int block) {
      return (long) block * CacheEntry.BLOCK_BYTES;
    }

    private long end(int block) {
      return start(block) + entry.bytesOf(block);
    }

    /// Whether this read wants all of a block.
    private boolean isWithin(int block) {
      return start(block) >= from && end(block) <= to;
    }

    /// Returns the part of this read's target where the wanted bytes of some blocks go.
    private MemorySegment target(int first, int end) {
      long begin = Math.max(from, start(first));
      return request.target().asSlice(begin - from, Math.min(to, end(end - 1)) - begin);
    }

    /// Returns the memory for all bytes of some blocks: the read's target, or the buffer of a
    /// block of which the read wants only a part.
    private MemorySegment whole(int first, int end, @Nullable MemorySegment buffer) {
      return buffer == null ? target(first, end) : buffer.asSlice(0, entry.bytesOf(first));
    }

    /// Copies the wanted bytes of a block from its buffer, if it has one, to this read's target.
    private void copy(int block, @Nullable MemorySegment buffer) {
      if (buffer != null) {
        MemorySegment wanted = target(block, block + 1);
        MemorySegment.copy(buffer, Math.max(0, from - start(block)), wanted, 0, wanted.byteSize());
      }
    }

    private CompletableFuture<Void> readGood(int block) {
      boolean read = entry.read(target(block, block + 1), Math.max(from, start(block)));
      return read ? DONE : pass(block, block + 1);
    }

    private CompletableFuture<Void> check(int block) {
      MemorySegment buffer = null;
      boolean right = false;
      try {
        buffer = isWithin(block) ? null : cache.takeBuffer();
        right = cached.isRight(block, whole(block, block + 1, buffer));
        if (right) {
          copy(block, buffer);
        }
      } finally {
        cache.giveBack(buffer);
        cache.settle(cached, block, right);
      }
      return right ? DONE : bring(block, block + 1);
    }

    /// Reads the wanted bytes of some blocks from the store without putting them into the cache.
    private CompletableFuture<Void> pass(int first, int end) {
      return ask(target(first, end), Math.max(from, start(first)), _ -> {});
    }

    /// Fetches blocks in hand and puts them into the cache. If there are several blocks, this read
    /// wants all of them whole.
    private CompletableFuture<Void> fetch(int first, int end) {
      return Cleanup.orUndo(
          () -> new ComingBlocks(cache, cached, first, end),
          coming -> fetch(first, end, coming),
          coming -> coming.end(null));
    }

    private CompletableFuture<Void> fetch(int first, int end, ComingBlocks coming) {
      MemorySegment buffer = isWithin(first) ? null : cache.takeBuffer();
      MemorySegment bytes = whole(first, end, buffer);
      // Both lambdas are made before the read begins: if the heap were full afterwards, this read
      // would fail while the store still writes to the target.
      LongConsumer arrived = count -> coming.arrived(bytes, count);
      BiConsumer<Void, @Nullable Throwable> ended =
          (_, failure) -> {
            try {
              if (failure == null) {
                copy(first, buffer);
              }
            } finally {
              coming.end(failure == null ? bytes : null);
            }
          };
      BiConsumer<Void, @Nullable Throwable> settled = (_, _) -> cache.giveBack(buffer);
      return CompletableFuture.allOf(
              ask(bytes, start(first), arrived).whenComplete(ended), coming.settled())
          .whenComplete(settled);
    }

    private CompletableFuture<Void> ask(MemorySegment target, long offset, LongConsumer arrived) {
      CompletableFuture<Void> answer = new CompletableFuture<>();
      try {
        remote.read(
            new ReadRequest(target, offset, request.cancellation()) {
              @Override
              public boolean mayRetry() {
                return request.mayRetry();
              }

              @Override
              public void whenSlow(Runnable action) {
                request.whenSlow(action);
              }

              @Override
              public void arrived(long bytes) {
                arrived.accept(bytes);
              }

              @Override
              public void completed() {
                boolean _ = answer.complete(null);
              }

              @Override
              public void failed(Throwable reason) {
                boolean _ = answer.completeExceptionally(reason);
              }
            });
      } catch (RuntimeException | Error e) {
        boolean _ = answer.completeExceptionally(e);
      }
      return answer;
    }
  }
}
