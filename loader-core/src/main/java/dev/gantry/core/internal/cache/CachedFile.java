// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.Cleanup;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

/// The state of a cached file in this process: which blocks are good, and which are in hand. A block is in hand
/// while one reader checks or fetches it. All readers of the file in a session share this. Thread-safe.
final class CachedFile implements AutoCloseable {
  /// Says how a reader gets a block.
  enum Turn {
    /// Read the block from the disk.
    GOOD,
    /// Read the block from the disk, compare its checksum, then call [#settle].
    CHECK,
    /// Fetch the block from its store, put it into the cache, then call [#settle]. No other process fetches it.
    FETCH,
    /// Fetch the block from its store, and do not put it into the cache.
    PASS,
    /// Wait for the reader that has the block in hand: it runs `again`.
    WAIT,
    /// Try again after a short while, since another process fetches the block.
    WAIT_FOR_OTHERS
  }

  /// How long to wait for another process: as long as a server may take for a block.
  private static final long PATIENCE_NANOS = 5_000_000_000L;

  private enum State {
    UNKNOWN,
    /// One reader has the block in hand.
    TAKEN,
    GOOD
  }

  private final String key;
  private final CacheEntry entry;
  private final State[] states;
  private final Map<Integer, List<Runnable>> waiting = new HashMap<>();

  /// When this process first saw that another process fetches a block, by block and in [System#nanoTime].
  private final Map<Integer, Long> othersSince = new HashMap<>();

  /// Whether another process took too long for a block; this one waits for no other process then.
  private boolean othersAreLate;

  private int good;
  private int users = 1;
  private boolean sealed;
  private boolean failed;

  CachedFile(String key, CacheEntry entry) {
    this.key = key;
    this.entry = entry;
    this.states = new State[CacheEntry.blocks(entry.size())];
    Arrays.fill(states, State.UNKNOWN);
    this.sealed = entry.isSealed();
  }

  String key() {
    return key;
  }

  CacheEntry entry() {
    return entry;
  }

  /// Whether all bytes are there and known to be right.
  synchronized boolean isWhole() {
    return !failed && (sealed || good == states.length);
  }

  /// Takes a block in hand, unless it is good or another reader has it in hand.
  ///
  /// @param mayPut whether the cache takes new blocks
  /// @param again runs when the block is settled, on the thread that settles it, if this returns [Turn#WAIT]
  Turn take(int block, boolean mayPut, Runnable again) {
    synchronized (this) {
      switch (states[block]) {
        case GOOD -> {
          return Turn.GOOD;
        }
        case TAKEN -> {
          waiting.computeIfAbsent(block, _ -> new ArrayList<>()).add(again);
          return Turn.WAIT;
        }
        case UNKNOWN -> states[block] = State.TAKEN;
      }
    }
    Turn turn = Turn.PASS;
    try {
      turn = turn(block, mayPut);
      return turn;
    } finally {
      if (turn == Turn.PASS || turn == Turn.WAIT_FOR_OTHERS) {
        settle(block, false);
      }
    }
  }

  private Turn turn(int block, boolean mayPut) {
    if (entry.sum(block).isPresent()) {
      return Turn.CHECK;
    }
    if (!mayPut) {
      return Turn.PASS;
    }
    if (!entry.tryLock(block)) {
      return others(block);
    }
    if (entry.sum(block).isEmpty()) {
      return Turn.FETCH;
    }
    // Another process has fetched the block meanwhile.
    entry.unlock(block);
    return Turn.CHECK;
  }

  /// Whether the bytes of a block in hand match its checksum.
  boolean isRight(int block, MemorySegment bytes) {
    OptionalInt sum = entry.sum(block);
    return sum.isPresent() && sum.getAsInt() == Crc32c.of(bytes);
  }

  /// Forgets a block in hand whose bytes do not match its checksum, and says how the reader gets it now.
  Turn forget(int block, boolean mayPut) {
    if (!mayPut) {
      return Turn.PASS;
    }
    if (!entry.tryLock(block)) {
      return others(block);
    }
    entry.forget(block);
    return Turn.FETCH;
  }

  /// Says whether to wait for the process that fetches a block. The wait has an end, since a stopped process
  /// keeps its locks.
  private synchronized Turn others(int block) {
    long now = System.nanoTime();
    othersAreLate |= now - othersSince.computeIfAbsent(block, _ -> now) > PATIENCE_NANOS;
    return othersAreLate ? Turn.PASS : Turn.WAIT_FOR_OTHERS;
  }

  /// Ends the time that a reader has a block in hand, and wakes readers that wait for it.
  ///
  /// @return whether the file has just become whole
  boolean settle(int block, boolean isGood) {
    List<Runnable> told;
    boolean whole;
    synchronized (this) {
      states[block] = isGood ? State.GOOD : State.UNKNOWN;
      if (isGood) {
        othersSince.remove(block);
      }
      good += isGood ? 1 : 0;
      whole = isGood && good == states.length;
      told = waiting.remove(block);
    }
    if (told != null) {
      told.forEach(Runnable::run);
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
    Cleanup.orUndo(entry::seal, () -> setSealed(false));
    setSealed(true);
  }

  /// Whether the disk failed to seal the file.
  synchronized boolean hasFailed() {
    return failed;
  }

  private synchronized void setSealed(boolean done) {
    sealed = done;
    failed = !done;
  }

  /// Counts one more user.
  synchronized CachedFile share() {
    users++;
    return this;
  }

  /// Counts one user less.
  ///
  /// @return whether that was the last user, who must call [#close]
  synchronized boolean leave() {
    users--;
    return users == 0;
  }

  @Override
  public void close() {
    entry.close();
  }
}
