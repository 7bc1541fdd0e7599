// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.BiFunction;
import java.util.function.IntFunction;

/// Random batch plans whose bytes are all known.
@SuppressWarnings("ArrayRecordComponent") // No test compares them as records.
final class Recipes {
  static final int BLOCK = PlanLimits.BLOCK_BYTES;
  static final int SLOT_BYTES = 40 * BLOCK;
  static final int HOST_BYTES = 3 * BLOCK;
  static final int REQUEST_BYTES = 8 * BLOCK;

  /// The bytes that a batch must hold.
  record Expected(List<Piece> pieces) {
    void check(RingBatch<?> batch) {
      for (Piece piece : pieces) {
        byte[] there = TestFiles.bytes(batch.region(piece.offset(), piece.bytes().length));
        assertThat(Arrays.mismatch(there, piece.bytes()))
            .as("batch %d, %d bytes at %d", batch.number(), there.length, piece.offset())
            .isEqualTo(-1);
      }
    }
  }

  record Piece(long offset, byte[] bytes) {}

  private record Shard(Location file, byte[] bytes) {}

  private final List<Shard> files = new ArrayList<>();

  private static final int[] LENGTHS = {
    1, BLOCK - 1, BLOCK, 5 * BLOCK + 1, 100 * BLOCK, 100 * BLOCK - 7
  };

  /// Makes plans over files, some of whose sizes are at the edges of blocks and beside them.
  Recipes(Path folder) {
    this(i -> Location.of(TestFiles.write(folder.resolve("shard" + i), i, LENGTHS[i])));
  }

  private Recipes(IntFunction<Location> file) {
    for (int i = 0; i < LENGTHS.length; i++) {
      files.add(new Shard(file.apply(i), TestFiles.bytes(i, LENGTHS[i])));
    }
  }

  /// Makes the same plans over files in a remote store.
  ///
  /// @param store stores a file and returns its location
  static Recipes remote(BiFunction<String, byte[], Location> store) {
    return new Recipes(i -> store.apply("shard" + i, TestFiles.bytes(i, LENGTHS[i])));
  }

  List<Path> files() {
    return files.stream().map(shard -> shard.file().path()).toList();
  }

  /// Returns a source of `count` batches, which the seed determines.
  Batches<Expected> batches(int count, long seed) {
    return new Batches<>(count, number -> plan(new Random(seed * 1_000_003 + number)));
  }

  /// Makes a plan whose slot has reads first, then host writes, then copies.
  BatchPlan<Expected> plan(Random random) {
    List<Piece> pieces = new ArrayList<>();
    List<Read> reads = new ArrayList<>();
    int end = 0;
    for (int i = random.nextInt(5); i > 0; i--) {
      end += read(random, end, reads, pieces);
    }
    int readEnd = end;
    int writtenAt = end + random.nextInt(40);
    byte[] bytes = new byte[random.nextInt(4) == 0 ? 0 : random.nextInt(HOST_BYTES)];
    random.nextBytes(bytes);
    HostWrites hostWrites = written(writtenAt, bytes, 1 + random.nextInt(3));
    pieces.add(new Piece(writtenAt, bytes));
    end = writtenAt + bytes.length;
    List<Copy2D> copies = new ArrayList<>();
    for (Piece piece : List.copyOf(pieces)) {
      // The bytes of a last block behind the required bytes are undefined, so they are not copied.
      if (random.nextBoolean() && piece.bytes().length > 0) {
        end = copy(random, piece, end, copies, pieces);
      }
    }
    assertThat(readEnd).isLessThanOrEqualTo(end);
    return new BatchPlan<>(reads, hostWrites, copies, new Expected(pieces));
  }

  private int read(Random random, int at, List<Read> reads, List<Piece> pieces) {
    Shard shard = files.get(random.nextInt(files.size()));
    int blocks = (shard.bytes().length + BLOCK - 1) / BLOCK;
    int first = random.nextInt(blocks);
    int count = 1 + random.nextInt(Math.min(6, blocks - first));
    int there = Math.min(count * BLOCK, shard.bytes().length - first * BLOCK);
    int required = random.nextBoolean() ? there : 1 + random.nextInt(there);
    reads.add(new Read(shard.file(), (long) first * BLOCK, count * BLOCK, required, 0, at));
    pieces.add(
        new Piece(at, Arrays.copyOfRange(shard.bytes(), first * BLOCK, first * BLOCK + required)));
    return count * BLOCK;
  }

  private static HostWrites written(long at, byte[] bytes, int parts) {
    List<HostWrites.HostWriter> writers = new ArrayList<>();
    for (int i = 0; i < parts; i++) {
      int from = (int) ((long) bytes.length * i / parts);
      int to = (int) ((long) bytes.length * (i + 1) / parts);
      writers.add(target ->
          MemorySegment.copy(MemorySegment.ofArray(bytes), from, target, from, to - from));
    }
    return new HostWrites(at, bytes.length, writers);
  }

  /// Adds a copy of one row or several rows, adjacent or apart.
  private static int copy(
      Random random, Piece piece, int end, List<Copy2D> copies, List<Piece> pieces) {
    int length = piece.bytes().length;
    int rowBytes = 1 + random.nextInt(Math.min(length, 3000));
    int fromPitch = rowBytes + (random.nextBoolean() ? 0 : random.nextInt(50));
    int toPitch = rowBytes + (random.nextBoolean() ? 0 : random.nextInt(50));
    int rows = 1 + random.nextInt((length - rowBytes) / fromPitch + 1);
    rows = Math.min(rows, 1 + 8 * BLOCK / toPitch);
    int to = end + random.nextInt(9);
    if (to + (rows - 1) * toPitch + rowBytes > SLOT_BYTES) {
      return end;
    }
    Copy2D copy = new Copy2D(piece.offset(), fromPitch, to, toPitch, rowBytes, rows);
    copies.add(copy);
    for (int row = 0; row < rows; row++) {
      int from = row * fromPitch;
      pieces.add(
          new Piece(
              to + (long) row * toPitch, Arrays.copyOfRange(piece.bytes(), from, from + rowBytes)));
    }
    return Math.toIntExact(copy.targetEnd());
  }
}
