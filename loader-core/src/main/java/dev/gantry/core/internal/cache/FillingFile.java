// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cache.CachedFile.Turn;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A remote file of which the cache has some blocks: reads fetch the missing blocks, each once, and write them
/// to the disk. Thread-safe.
final class FillingFile implements FileCache.Filling {
  private final RemoteCache cache;
  private final Location.Remote location;
  private final StoredFile remote;
  private final CachedFile cached;
  private final CacheEntry entry;
  private final Supplier<SourceFile> past;

  /// @param remote the file in its store; closed with this
  /// @param cached the blocks in the cache; [#close] ends this use of them
  /// @param past opens the remote file again
  FillingFile(
      RemoteCache cache,
      Location.Remote location,
      StoredFile remote,
      CachedFile cached,
      Supplier<SourceFile> past) {
    this.cache = cache;
    this.location = location;
    this.remote = remote;
    this.cached = cached;
    this.entry = cached.entry();
    this.past = past;
  }

  @Override
  public long size() {
    return remote.size();
  }

  @Override
  public Object identity() {
    return remote.identity();
  }

  @Override
  public Optional<Instant> modified() {
    return remote.modified();
  }

  @Override
  public String version() {
    return remote.version();
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
    return cache.local(
        cached, policy, remote.identity(), remote.version(), remote.modified(), past);
  }

  @Override
  public void read(ReadRequest request) {
    long length = request.target().byteSize();
    if (length == 0) {
      request.completed();
      return;
    }
    Reading reading = new Reading(request);
    int first = (int) (request.offset() / CacheEntry.BLOCK_BYTES);
    int last = (int) ((request.offset() + length - 1) / CacheEntry.BLOCK_BYTES);
    reading.run(first, last);
  }

  @Override
  public void close() {
    Cleanup.runAll(List.of(remote::close, () -> cache.leave(cached)));
  }

  /// One read of this file, which ends when all its parts have ended.
  private final class Reading {
    private final ReadRequest request;
    private final long from;
    private final long to;

    /// Counts the parts that have not ended. The thread that starts them counts as one.
    private final AtomicInteger parts = new AtomicInteger(1);

    private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

    Reading(ReadRequest request) {
      this.request = request;
      this.from = request.offset();
      this.to = from + request.target().byteSize();
    }

    void end() {
      if (parts.decrementAndGet() == 0) {
        Throwable reason = failure.get();
        if (reason == null) {
          request.completed();
        } else {
          request.failed(reason);
        }
      }
    }

    private void fail(Throwable reason) {
      failure.compareAndSet(null, reason);
    }

    /// Brings blocks as one part, which the caller has counted.
    void run(int first, int last) {
      try {
        serve(first, last);
      } catch (RuntimeException | Error e) {
        fail(e);
      }
      end();
    }

    private void serve(int first, int last) {
      if (request.cancellation().isCancelled()) {
        fail(new TransferException("read", location.toString(), new Failure.Cancelled()));
        return;
      }
      Turn[] turns = new Turn[last - first + 1];
      Arrays.fill(turns, Turn.WAIT);
      try {
        for (int i = 0; i < turns.length; i++) {
          turns[i] = turn(first + i);
        }
        // Requests what is missing first, so that it is under way while this thread reads the rest
        // from the disk.
        for (int i = 0; i < turns.length; ) {
          int end = turns[i] == Turn.FETCH ? endOfFetch(turns, i, first) : i + 1;
          if (turns[i] == Turn.FETCH) {
            Arrays.fill(turns, i, end, Turn.WAIT);
            fetch(first + i, first + end);
          }
          i = end;
        }
        for (int i = 0; i < turns.length; ) {
          Turn turn = turns[i];
          int end = i + 1;
          while (turn != Turn.CHECK && end < turns.length && turns[end] == turn) {
            end++;
          }
          turns[i] = Turn.WAIT;
          switch (turn) {
            case GOOD -> readGood(first + i, first + end);
            case CHECK -> check(first + i);
            case PASS -> pass(first + i, first + end);
            case FETCH, WAIT, WAIT_FOR_OTHERS -> {}
          }
          i = end;
        }
      } catch (RuntimeException | Error e) {
        giveBack(turns, first);
        throw e;
      }
    }

    /// Returns the index after the blocks that one request fetches: several only if this read wants all of each.
    private int endOfFetch(Turn[] turns, int i, int first) {
      int end = i + 1;
      while (isWithin(first + i)
          && end < turns.length
          && turns[end] == Turn.FETCH
          && isWithin(first + end)) {
        end++;
      }
      return end;
    }

    private void giveBack(Turn[] turns, int first) {
      for (int i = 0; i < turns.length; i++) {
        switch (turns[i]) {
          case FETCH -> give(first + i, false);
          case CHECK -> cache.settle(cached, first + i, false);
          case GOOD, PASS, WAIT, WAIT_FOR_OTHERS -> {}
        }
      }
    }

    private Turn turn(int block) {
      parts.incrementAndGet();
      Turn turn = Turn.PASS;
      Waiter waiter = new Waiter(block);
      try {
        turn = cached.take(block, cache.mayPut(), waiter);
        if (turn == Turn.WAIT) {
          waiter.endWith(request.cancellation());
        }
      } catch (TransferException e) {
        cache.refuse(e);
      } finally {
        if (turn != Turn.WAIT) {
          parts.decrementAndGet();
        }
      }
      return turn == Turn.WAIT_FOR_OTHERS ? comeAgain(block) : turn;
    }

    /// Tries a block again later, since another process fetches it. Reads past the cache if no thread can do that.
    private Turn comeAgain(int block) {
      parts.incrementAndGet();
      if (cache.later(() -> run(block, block))) {
        return Turn.WAIT_FOR_OTHERS;
      }
      parts.decrementAndGet();
      return Turn.PASS;
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

    /// Copies the wanted bytes of a block to this read's target.
    ///
    /// @param whole all bytes of the block
    private void copy(int block, MemorySegment whole) {
      MemorySegment wanted = target(block, block + 1);
      MemorySegment.copy(whole, Math.max(0, from - start(block)), wanted, 0, wanted.byteSize());
    }

    private void readGood(int first, int end) {
      if (!entry.read(target(first, end), Math.max(from, start(first)))) {
        pass(first, end);
      }
    }

    private void check(int block) {
      MemorySegment buffer = isWithin(block) ? null : cache.takeBuffer();
      boolean right = false;
      Turn next = Turn.PASS;
      try {
        MemorySegment whole =
            buffer == null ? target(block, block + 1) : buffer.asSlice(0, entry.bytesOf(block));
        right = entry.read(whole, start(block)) && cached.isRight(block, whole);
        if (right && buffer != null) {
          copy(block, whole);
        }
        if (!right) {
          next = cached.forget(block, cache.mayPut());
        }
      } catch (TransferException e) {
        cache.refuse(e);
      } finally {
        cache.giveBack(buffer);
        if (right || next != Turn.FETCH) {
          cache.settle(cached, block, right);
        }
      }
      if (right) {
        return;
      }
      if (next == Turn.WAIT_FOR_OTHERS) {
        next = comeAgain(block);
      }
      switch (next) {
        case FETCH -> fetch(block, block + 1);
        case WAIT_FOR_OTHERS -> {}
        case GOOD, CHECK, PASS, WAIT -> pass(block, block + 1);
      }
    }

    /// Reads the wanted bytes of some blocks from the store, past the cache.
    private void pass(int first, int end) {
      begin(new Part(target(first, end), Math.max(from, start(first)), () -> {}, () -> {}));
    }

    /// Fetches blocks in hand, and puts them into the cache: one block, or several that this read wants whole.
    private void fetch(int first, int end) {
      MemorySegment buffer =
          isWithin(first) ? null : Cleanup.orUndo(cache::takeBuffer, () -> giveUp(first, end));
      MemorySegment bytes =
          buffer == null ? target(first, end) : buffer.asSlice(0, entry.bytesOf(first));
      Runnable put =
          () -> {
            if (buffer != null) {
              copy(first, bytes);
            }
            for (int block = first; block < end; block++) {
              boolean good = false;
              try {
                if (cache.mayPut()) {
                  entry.put(
                      block, bytes.asSlice(start(block) - start(first), entry.bytesOf(block)));
                  good = true;
                }
              } catch (TransferException e) {
                cache.refuse(e);
              }
              give(block, good);
            }
            cache.giveBack(buffer);
          };
      Runnable giveUp =
          () -> {
            giveUp(first, end);
            cache.giveBack(buffer);
          };
      begin(new Part(bytes, start(first), put, giveUp));
    }

    private void giveUp(int first, int end) {
      for (int block = first; block < end; block++) {
        give(block, false);
      }
    }

    private void give(int block, boolean good) {
      entry.unlock(block);
      cache.settle(cached, block, good);
    }

    private void begin(Part part) {
      parts.incrementAndGet();
      try {
        remote.read(part);
      } catch (RuntimeException | Error e) {
        part.failed(e);
      }
    }

    /// Waits until another reader settles a block, or this read is cancelled; then this read tries the block again.
    private final class Waiter implements Runnable {
      private final int block;
      private final AtomicBoolean told = new AtomicBoolean();
      private volatile Runnable forget = () -> {};

      Waiter(int block) {
        this.block = block;
      }

      void endWith(Cancellation cancellation) {
        forget = cancellation.whenCancelled(this);
        if (told.get()) {
          forget.run();
        }
      }

      @Override
      public void run() {
        if (told.compareAndSet(false, true)) {
          forget.run();
          cache.run(() -> Reading.this.run(block, block));
        }
      }
    }

    /// A request to the remote file. The cache's threads do what follows it, since a store's threads must not
    /// wait for a disk.
    private final class Part extends ReadRequest {
      private final Runnable done;
      private final Runnable giveUp;

      Part(MemorySegment target, long offset, Runnable done, Runnable giveUp) {
        super(target, offset, request.cancellation());
        this.done = done;
        this.giveUp = giveUp;
      }

      @Override
      public void completed() {
        follow(done);
      }

      @Override
      public void failed(Throwable reason) {
        fail(reason);
        follow(giveUp);
      }

      private void follow(Runnable work) {
        cache.run(() -> {
          try {
            work.run();
          } catch (RuntimeException | Error e) {
            fail(e);
          }
          end();
        });
      }
    }
  }
}
