// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The state of a cached file in this process: which blocks are good, and which are in hand. A
/// block is good if its bytes on the disk match its checksum; it is in hand while one reader
/// checks or fetches it. All readers of the file in a session share an instance. Thread-safe.
final class CachedFile implements AutoCloseable {
  /// How a reader gets a block.
  enum Turn {
    /// Read the block from the disk.
    GOOD,
    /// Read the block from the disk, compare its checksum, then call [#settle].
    CHECK,
    /// Fetch the block from its store, put it into the cache, then call [#settle]. The block is
    /// locked, so no other process fetches it.
    FETCH,
    /// Fetch the block from its store without putting it into the cache.
    PASS,
    /// Try again when the reader that has the block in hand has settled it: see [#settled].
    WAIT,
    /// Try again after a short while, since another process fetches the block.
    WAIT_FOR_OTHERS
  }

  /// How long to wait for another process, which is as long as a server may take for a block.
  private static final long PATIENCE_NANOS = 5_000_000_000L;

  private final LongSupplier nanoTime;
  private final String key;
  private final EntryFolder folder;
  private final CacheEntry entry;
  private final int blocks;
  private final BitSet good = new BitSet();

  /// The blocks on the disk that do not match their checksums.
  private final BitSet wrong = new BitSet();

  /// The blocks in hand, each with the future that is completed when the block is settled.
  private final Map<Integer, CompletableFuture<Void>> inHand = new HashMap<>();

  /// For each block, the time at which this process first saw that another process
  /// fetches it.
  private final Map<Integer, Long> othersSince = new HashMap<>();

  /// Whether another process took too long for a block. This process does not wait for other
  /// processes any more then.
  private boolean othersAreLate;

  private int users = 1;
  private boolean sealed;
  private boolean failed;

  /// @param entry the entry on the disk; [#close] closes it
  CachedFile(String key, EntryFolder folder, CacheEntry entry) {
    this(key, folder, entry, System::nanoTime);
  }

  /// @param nanoTime the clock of the waits for other processes
  CachedFile(String key, EntryFolder folder, CacheEntry entry, LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    this.key = key;
    this.folder = folder;
    this.entry = entry;
    this.blocks = CacheEntry.blocks(entry.size());
    this.sealed = entry.isSealed();
  }

  String key() {
    return key;
  }

  CacheEntry entry() {
    return entry;
  }

  /// Whether all blocks are good.
  synchronized boolean isWhole() {
    return !failed && (sealed || good.cardinality() == blocks);
  }

  /// Whether an open file is this file's data and is known to be right. It is not if it was
  /// modified after it was sealed.
  boolean isDataOf(SourceFile.Identity file) {
    boolean known;
    synchronized (this) {
      known = sealed;
    }
    return entry.isDataOf(file) && (!known || entry.isSealedAs(file));
  }

  /// Takes a block in hand, unless it is good or another reader has it in hand.
  ///
  /// @param mayPut whether the cache takes new blocks
  Turn take(int block, boolean mayPut) {
    synchronized (this) {
      if (good.get(block)) {
        return Turn.GOOD;
      }
      if (inHand.putIfAbsent(block, new CompletableFuture<>()) != null) {
        return Turn.WAIT;
      }
    }
    Turn turn = Turn.PASS;
    try {
      turn = turn(block, mayPut);
      return turn;
    } finally {
      if (turn == Turn.PASS || turn == Turn.WAIT_FOR_OTHERS) {
        boolean _ = settle(block, false);
      }
    }
  }

  private Turn turn(int block, boolean mayPut) {
    if (mayBeRight(block)) {
      return Turn.CHECK;
    }
    if (!mayPut) {
      return Turn.PASS;
    }
    if (!entry.tryLock(block)) {
      return others(block);
    }
    forgetOthers(block);
    if (!mayBeRight(block)) {
      return Turn.FETCH;
    }
    // Another process fetched the block before this process got the lock.
    entry.unlock(block);
    return Turn.CHECK;
  }

  /// Notes that no other process fetches a block any more; the next that does has all its time.
  private synchronized void forgetOthers(int block) {
    othersSince.remove(block);
  }

  private boolean mayBeRight(int block) {
    synchronized (this) {
      if (wrong.get(block)) {
        return false;
      }
    }
    return entry.sum(block).isPresent();
  }

  /// Whether the bytes of a block in hand match its checksum. If they do not, the block is marked
  /// as wrong and the next [#take] has it fetched.
  ///
  /// @param bytes all bytes of the block
  boolean isRight(int block, MemorySegment bytes) {
    OptionalInt sum = entry.sum(block);
    boolean right =
        sum.isPresent()
            && entry.read(bytes, (long) block * CacheEntry.BLOCK_BYTES)
            && sum.getAsInt() == Crc32c.of(bytes);
    synchronized (this) {
      wrong.set(block, !right);
    }
    return right;
  }

  /// Decides whether to wait for the process that fetches a block. The wait is bounded, since a
  /// stopped process keeps its locks.
  private synchronized Turn others(int block) {
    long now = nanoTime.getAsLong();
    othersAreLate |= now - othersSince.computeIfAbsent(block, _ -> now) > PATIENCE_NANOS;
    return othersAreLate ? Turn.PASS : Turn.WAIT_FOR_OTHERS;
  }

  /// Returns a future that is completed when a block is not in hand any more. The caller may
  /// complete it earlier.
  synchronized CompletableFuture<Void> settled(int block) {
    CompletableFuture<Void> present = inHand.get(block);
    return present == null ? CompletableFuture.completedFuture(null) : present.copy();
  }

  /// Notes that a reader does not have a block in hand any more, and unlocks the block.
  ///
  /// @return whether the file has just become whole
  boolean settle(int block, boolean isGood) {
    @Nullable CompletableFuture<Void> told;
    boolean whole;
    synchronized (this) {
      if (isGood) {
        good.set(block);
        wrong.clear(block);
        othersSince.remove(block);
      }
      whole = isGood && good.cardinality() == blocks;
      told = inHand.remove(block);
    }
    if (told != null) {
      told.complete(null);
    }
    return whole;
  }

  /// Synchronises and seals a whole file, once.
  ///
  /// @throws TransferException if the disk fails; the file does not count as whole then
  void seal() {
    synchronized (this) {
      if (sealed || failed) {
        return;
      }
    }
    Cleanup.orUndo(
        () -> {
          entry.seal();
          folder.sealed(key);
        },
        () -> {
          setSealed(false);
          folder.failed(key);
        });
    setSealed(true);
  }

  private synchronized void setSealed(boolean done) {
    sealed = done;
    failed = !done;
  }

  /// Adds a user.
  synchronized CachedFile share() {
    users++;
    return this;
  }

  /// Removes a user.
  ///
  /// @return whether that was the last user, who must call [#close]
  synchronized boolean leave() {
    users--;
    return users == 0;
  }

  /// Closes the entry, and tells its folder, which removes the entry if the disk failed.
  @Override
  public synchronized void close() {
    entry.close();
    // The folder is told last: the entry can be removed only after this process has given up its
    // own lock.
    folder.closed(key, failed);
  }
}
