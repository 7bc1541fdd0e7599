// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.checksum.BlockChecksums;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.TransferEngine;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// Computes the CRC32C of ranges of files, on several threads. May be used once, by one thread.
final class FileSums {
  /// The size of the pieces into which ranges are cut, so that even a file of one tensor has work
  /// for all threads.
  private static final long PIECE_BYTES = 4 * PlanLimits.DEFAULT.requestBytes();

  /// The most threads. One processor computes some 5 GB/s of checksums, and memory bandwidth does
  /// not suffice for more threads.
  private static final int MAX_THREADS = 16;

  /// @param extent the index of the extent that the piece belongs to
  private record Piece(int extent, SourceFile file, long offset, long length) {}

  private final TransferEngine engine;
  private final Map<Location, SourceFile> files = new LinkedHashMap<>();

  FileSums(TransferEngine engine) {
    this.engine = engine;
  }

  /// @return the checksum of each of `extents`
  int[] of(List<Extent> extents) {
    try {
      List<Piece> pieces = new ArrayList<>();
      for (int i = 0; i < extents.size(); i++) {
        cut(i, extents.get(i), pieces);
      }
      int[] sums = new int[pieces.size()];
      List<Integer> indexes = new ArrayList<>(pieces.size());
      for (int i = 0; i < pieces.size(); i++) {
        indexes.add(i);
      }
      int threads = Math.clamp(Runtime.getRuntime().availableProcessors(), 2, MAX_THREADS);
      new WorkerThreads(
              "checksum",
              () -> WorkerThreads.names(files.keySet()),
              "gantry-sums-",
              new Cancellation())
          .forEach(threads, indexes, i -> sums[i] = sum(pieces.get(i)), () -> {});
      return joined(extents.size(), pieces, sums);
    } finally {
      Cleanup.forEach(files.values(), SourceFile::close);
    }
  }

  private void cut(int index, Extent extent, List<Piece> pieces) {
    if (extent.length() == 0) {
      return;
    }
    SourceFile file =
        files.computeIfAbsent(
            extent.file(), location -> engine.openFile(location, CachePolicy.BY_RESIDENCY));
    file.checkHolds(extent.end());
    for (long done = 0; done < extent.length(); done += PIECE_BYTES) {
      long length = Math.min(PIECE_BYTES, extent.length() - done);
      pieces.add(new Piece(index, file, extent.offset() + done, length));
    }
  }

  private static int sum(Piece piece) {
    BlockChecksums sums = new BlockChecksums(piece.length, piece.length);
    SourceReading.ofFile(piece.file, piece.offset, piece.length, sums::add);
    return sums.sums()[0];
  }

  private static int[] joined(int count, List<Piece> pieces, int[] sums) {
    int[] joined = new int[count];
    Arrays.fill(joined, Crc32c.OF_NOTHING);
    for (int i = 0; i < sums.length; i++) {
      Piece piece = Objects.requireNonNull(pieces.get(i));
      joined[piece.extent] = Crc32c.combine(joined[piece.extent], sums[i], piece.length);
    }
    return joined;
  }
}
