// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.TransferException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// Blocks in hand that one request fetches from their store. Each block is put into the cache as
/// soon as it has arrived, while the later blocks arrive, so that the request's memory is free
/// soon after the last block. The cache's threads write the blocks, since a store's threads must
/// not wait for a disk. Thread-safe.
final class ComingBlocks {
  private final RemoteCache cache;
  private final CachedFile cached;
  private final int first;
  private final int end;
  private final CompletableFuture<Void> settled = new CompletableFuture<>();

  /// The first block that has not arrived yet.
  private int next;

  /// How many of the blocks are not settled yet.
  private int inHand;

  ComingBlocks(RemoteCache cache, CachedFile cached, int first, int end) {
    this.cache = cache;
    this.cached = cached;
    this.first = first;
    this.end = end;
    this.next = first;
    this.inHand = end - first;
  }

  /// Completes when all blocks are settled, so that nothing reads their memory any more. Never fails.
  CompletableFuture<Void> settled() {
    return settled;
  }

  /// Puts the blocks into the cache that have arrived whole.
  ///
  /// @param bytes the memory of all of the blocks
  /// @param count how many bytes have arrived so far
  void arrived(MemorySegment bytes, long count) {
    settleUntil(bytes, first + (int) (count / CacheEntry.BLOCK_BYTES));
  }

  /// Settles the remaining blocks after the request has ended.
  ///
  /// @param bytes the memory of all of the blocks; null if the request failed, so that the
  ///     remaining blocks did not arrive
  void end(@Nullable MemorySegment bytes) {
    settleUntil(bytes, end);
  }

  private void settleUntil(@Nullable MemorySegment bytes, int until) {
    int from;
    synchronized (this) {
      from = next;
      next = Math.max(next, Math.min(end, until));
    }
    for (int i = from; i < Math.min(end, until); i++) {
      int block = i;
      cache.run(() -> settle(bytes, block));
    }
  }

  private void settle(@Nullable MemorySegment bytes, int block) {
    try {
      boolean good = false;
      try {
        if (bytes != null && cache.mayPut()) {
          CacheEntry entry = cached.entry();
          long start = (long) (block - first) * CacheEntry.BLOCK_BYTES;
          entry.put(block, bytes.asSlice(start, entry.bytesOf(block)));
          good = true;
        }
      } catch (TransferException e) {
        cache.refuse(e);
      } finally {
        cached.entry().unlock(block);
        cache.settle(cached, block, good);
      }
    } catch (OutOfMemoryError _) {
      // The reader has the block nevertheless; a later read puts it into the cache.
    } finally {
      noteSettled();
    }
  }

  private void noteSettled() {
    boolean last;
    synchronized (this) {
      inHand--;
      last = inHand == 0;
    }
    if (last) {
      settled.complete(null);
    }
  }
}
