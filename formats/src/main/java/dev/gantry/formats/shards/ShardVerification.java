// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Source;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;

/// Compares all blocks of a set with their checksums. May be used once.
final class ShardVerification {
  /// How many bytes one thread takes at a time: enough that opening the file hardly counts, and few enough
  /// that all threads end at about the same time.
  private static final long TURN_BYTES = 64L << 20;

  /// The most threads: so many read about as fast as checksums are computed.
  private static final int MAX_THREADS = 8;

  /// The blocks that one thread takes, from number `block` on.
  private record Turn(Shard shard, int block, Extent extent) {}

  private final GantrySession session;
  private final ShardSet set;
  private final List<Turn> turns = new ArrayList<>();
  private final LongAdder done = new LongAdder();
  private final WorkerThreads workers;

  ShardVerification(GantrySession session, ShardSet set, Cancellation cancellation) {
    this.session = session;
    this.set = set;
    workers =
        new WorkerThreads(
            "verify", () -> set.location().toString(), "gantry-verifier-", cancellation);
    long blocks = Math.max(1, TURN_BYTES / set.blockBytes());
    for (Shard shard : set.shards()) {
      for (long block = 0; block < shard.blocks(); block += blocks) {
        long from = block * set.blockBytes();
        long length = Math.min(blocks * set.blockBytes(), shard.bytes() - from);
        turns.add(new Turn(shard, (int) block, new Extent(shard.location(), from, length)));
      }
    }
  }

  void run(int threads, ProgressListener progress) {
    int wanted =
        threads > 0 ? threads : Math.min(MAX_THREADS, Runtime.getRuntime().availableProcessors());
    workers.forEach(
        wanted, turns, this::check, () -> progress.onProgress(done.sum(), set.totalBytes()));
    workers.throwIfCancelled();
  }

  private void check(Turn turn) {
    int[] sums = session.checksums(new Source.FilePart(turn.extent()), set.blockBytes());
    for (int i = 0; i < sums.length; i++) {
      int written = turn.shard().crc32c(turn.block() + i);
      if (sums[i] != written) {
        throw new MalformedFileException(
            turn.shard().location(),
            turn.extent().offset() + i * set.blockBytes(),
            "checksum-mismatch",
            String.format(
                Locale.ROOT,
                "block %d has CRC32C %08x, and had %08x when it was written",
                turn.block() + i,
                sums[i],
                written));
      }
    }
    done.add(turn.extent().length());
  }
}
