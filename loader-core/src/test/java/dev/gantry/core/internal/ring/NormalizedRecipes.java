// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.convert.HostNormalizer;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.Recipes.Expected;
import dev.gantry.core.internal.ring.Recipes.Piece;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// Random plans of batches that are normalised: samples of all types and shapes, at any offset of
/// a file. The expected values come from the CPU's implementation.
final class NormalizedRecipes {
  private static final int BLOCK = Recipes.BLOCK;
  private static final int FILE_BYTES = 60 * BLOCK + 123;
  private static final List<DType> SOURCES = Normalization.SOURCES.stream().sorted().toList();
  private static final List<DType> TARGETS = Normalization.TARGETS.stream().sorted().toList();

  private final Location file;
  private final byte[] bytes;

  NormalizedRecipes(Path folder) {
    file = Location.of(TestFiles.write(folder.resolve("samples"), 99, FILE_BYTES));
    bytes = TestFiles.bytes(99, FILE_BYTES);
  }

  Batches<Expected> batches(int count, long seed) {
    return new Batches<>(count, number -> plan(new Random(seed * 1_000_003 + number)));
  }

  private BatchPlan<Expected> plan(Random random) {
    while (true) {
      BatchPlan<Expected> plan =
          random.nextInt(3) == 0 ? together(random, what(random)) : apart(random, what(random));
      if (plan.normalized().getFirst().to() + plan.label().pieces().getFirst().bytes().length
          <= Recipes.SLOT_BYTES) {
        return plan;
      }
    }
  }

  private static Normalization what(Random random) {
    DType from = random.nextInt(3) == 0 ? DType.U8 : SOURCES.get(random.nextInt(SOURCES.size()));
    DType to = TARGETS.get(random.nextInt(TARGETS.size()));
    int channels = 1 + random.nextInt(random.nextInt(10) == 0 ? Normalization.MAX_CHANNELS : 8);
    int most = (random.nextInt(4) == 0 ? 5 * BLOCK : 500) / from.alignmentBytes() / channels;
    List<Float> scale = new ArrayList<>();
    List<Float> shift = new ArrayList<>();
    for (int i = 0; i < channels; i++) {
      scale.add(random.nextFloat() / 255);
      shift.add(random.nextFloat() - 1);
    }
    return new Normalization(
        from, to, 1 + random.nextInt(Math.max(1, most)), random.nextBoolean(), scale, shift);
  }

  /// Makes a plan that reads each sample separately and packs the samples.
  private BatchPlan<Expected> apart(Random random, Normalization what) {
    int rowBytes = (int) what.fromBytes();
    int rows = 1 + random.nextInt(4);
    List<Read> reads = new ArrayList<>();
    int end = 0;
    int[] places = new int[rows];
    int[] offsets = new int[rows];
    for (int i = 0; i < rows; i++) {
      offsets[i] = random.nextInt(FILE_BYTES - rowBytes);
      int block = offsets[i] / BLOCK * BLOCK;
      int required = offsets[i] + rowBytes - block;
      int length = (required + BLOCK - 1) / BLOCK * BLOCK;
      reads.add(new Read(file, block, length, required, 0, end));
      places[i] = end + offsets[i] - block;
      end += length;
    }
    int packed = end + random.nextInt(40);
    List<Copy2D> copies = new ArrayList<>();
    for (int i = 0; i < rows; i++) {
      copies.add(
          new Copy2D(places[i], rowBytes, packed + (long) i * rowBytes, rowBytes, rowBytes, 1));
    }
    return plan(reads, copies, what, packed, rowBytes, offsets);
  }

  /// Makes a plan whose samples have a fixed pitch in the file. One read brings them, and they are
  /// not moved.
  private BatchPlan<Expected> together(Random random, Normalization what) {
    int rowBytes = (int) what.fromBytes();
    int pitch = rowBytes + random.nextInt(3) * 7;
    int most = Math.max(1, (Recipes.REQUEST_BYTES - BLOCK) / pitch);
    int[] offsets = new int[1 + random.nextInt(Math.min(6, most))];
    int all = (offsets.length - 1) * pitch + rowBytes;
    int first = random.nextInt(FILE_BYTES - all);
    for (int i = 0; i < offsets.length; i++) {
      offsets[i] = first + i * pitch;
    }
    int block = first / BLOCK * BLOCK;
    int required = first + all - block;
    int length = (required + BLOCK - 1) / BLOCK * BLOCK;
    List<Read> reads = List.of(new Read(file, block, length, required, 0, 0));
    return plan(reads, List.of(), what, first - block, pitch, offsets);
  }

  private BatchPlan<Expected> plan(
      List<Read> reads,
      List<Copy2D> copies,
      Normalization what,
      long from,
      long pitch,
      int[] offsets) {
    long readEnd =
        reads.stream().mapToLong(read -> read.slabOffset() + read.length()).max().orElse(0);
    long copyEnd = copies.stream().mapToLong(Copy2D::targetEnd).max().orElse(0);
    long to = (Math.max(readEnd, copyEnd) + 63) / 64 * 64;
    NormalizedRows rows = new NormalizedRows(what, from, pitch, to, offsets.length);
    Expected expected = new Expected(List.of(new Piece(to, results(what, offsets))));
    return new BatchPlan<>(reads, HostWrites.NONE, copies, expected)
        .withNormalized(List.of(rows), expected, other -> other);
  }

  private byte[] results(Normalization what, int[] offsets) {
    int rowBytes = (int) what.fromBytes();
    int resultBytes = (int) what.toBytes();
    byte[] memory = new byte[offsets.length * (rowBytes + resultBytes) + 4];
    for (int i = 0; i < offsets.length; i++) {
      System.arraycopy(bytes, offsets[i], memory, i * rowBytes, rowBytes);
    }
    int to = (offsets.length * rowBytes + 3) / 4 * 4;
    NormalizedRows rows = new NormalizedRows(what, 0, rowBytes, to, offsets.length);
    HostNormalizer.normalize(rows, MemorySegment.ofArray(memory), 0, offsets.length);
    byte[] results = new byte[offsets.length * resultBytes];
    System.arraycopy(memory, to, results, 0, results.length);
    return results;
  }
}
