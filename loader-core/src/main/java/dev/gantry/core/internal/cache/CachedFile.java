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

/// What this process knows of a cached file: which blocks are good, and which are being fetched. Shared by all
/// readers of the file in a session. Thread-safe.
final class CachedFile implements AutoCloseable {
  /// What a reader of a block does.
  enum Turn {
    /// Read it from the disk.
    GOOD,
    /// Read it from the disk, compare its checksum, and [#settle].
    CHECK,
    /// Fetch it, put it, and [#settle]. No other process fetches it.
    FETCH,
    /// Fetch it for itself: the cache takes no more.
    PASS,
    /// Come again when told.
    WAIT,
    /// Come again after a short while: another process fetches it.
    WAIT_FOR_OTHERS
  }

  /// As long as a server may take for a block.
  private static final long PATIENCE_NANOS = 5_000_000_000L;

  private enum State {
    UNKNOWN,
    /// One reader has it in hand.
    TAKEN,
    GOOD
  }

  private final String key;
  private final CacheEntry entry;
  private final State[] states;
  private final Map<Integer, List<Runnable>> waiting = new HashMap<>();

  /// Since when another process has been fetching a block, as far as this one has seen.
  private final Map<Integer, Long> othersSince = new HashMap<>();

  /// Whether another process kept a block for too long: it is not waited for again.
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

  /// Takes a block in hand, if nothing else has it.
  ///
  /// @param mayPut whether the cache takes new blocks
  /// @param again run, on the thread that settles the block, if this says to wait
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
    // Another process has fetched it meanwhile.
    entry.unlock(block);
    return Turn.CHECK;
  }

  /// Whether these are the bytes of a block in hand.
  boolean isRight(int block, MemorySegment bytes) {
    OptionalInt sum = entry.sum(block);
    return sum.isPresent() && sum.getAsInt() == Crc32c.of(bytes);
  }

  /// After a block in hand was not what its checksum says.
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

  /// Whether to wait for the process that fetches a block: one that is stopped keeps its locks.
  private synchronized Turn others(int block) {
    long now = System.nanoTime();
    othersAreLate |= now - othersSince.computeIfAbsent(block, _ -> now) > PATIENCE_NANOS;
    return othersAreLate ? Turn.PASS : Turn.WAIT_FOR_OTHERS;
  }

  /// A block is no longer in hand.
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

  /// Synchronises a whole file, once.
  ///
  /// @throws TransferException if the disk fails; the file is not used as a whole then
  void seal() {
    synchronized (this) {
      if (sealed || failed) {
        return;
      }
    }
    Cleanup.orUndo(entry::seal, () -> setSealed(false));
    setSealed(true);
  }

  /// Whether the disk did not take the file.
  synchronized boolean hasFailed() {
    return failed;
  }

  private synchronized void setSealed(boolean done) {
    sealed = done;
    failed = !done;
  }

  /// One more user.
  synchronized CachedFile share() {
    users++;
    return this;
  }

  /// One user less.
  ///
  /// @return whether it was the last one, who calls [#close]
  synchronized boolean leave() {
    users--;
    return users == 0;
  }

  @Override
  public void close() {
    entry.close();
  }
}
