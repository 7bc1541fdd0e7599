// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.core.Device;
import dev.gantry.core.internal.cufile.CuFileRule.Way;
import dev.gantry.core.internal.session.CuFileTrial;
import dev.gantry.core.internal.session.CuFileTrial.Part;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;

/// Scattered reads of one size into device memory, by one of cuFile's ways. Ways of the same size and
/// alignment make the same reads.
final class CuFileReads implements Contender {
  private static final int BLOCK_BYTES = 4096;
  private static final long MOST_BYTES = 64L << 20;
  private static final int MOST_READS = 1024;
  private static final int OFF_FILE = 123;
  private static final int OFF_MEMORY = 57;

  /// @param aligned whether offsets in file and memory are multiples of 4 KiB
  record Kind(Way way, long requestBytes, int depth, boolean aligned) {
    String name() {
      String by =
          switch (way) {
            case SYNC -> "threads";
            case BATCH -> "batches";
            case STREAM -> "streams";
          };
      return by
          + ", "
          + (requestBytes < 1 << 20 ? requestBytes >> 10 : requestBytes >> 20)
          + (requestBytes < 1 << 20 ? " KiB" : " MiB")
          + (aligned ? "" : " unaligned")
          + ", depth "
          + depth;
    }

    Map<String, Long> parameters() {
      return Map.of(
          Point.REQUEST_BYTES,
          requestBytes,
          Point.DEPTH,
          (long) depth,
          Point.ALIGNED,
          aligned ? 1L : 0L);
    }
  }

  private final CuFileTrial trial;
  private final Kind kind;
  private final List<Part> parts;

  private CuFileReads(CuFileTrial trial, Kind kind, long fileBytes) {
    this.trial = trial;
    this.kind = kind;
    this.parts = parts(kind, fileBytes);
  }

  /// Memory for the reads of any kind.
  static CuFileTrial trial(Path file, Device.Cuda device, boolean pastCache) {
    return CuFileTrial.open(file, device, pastCache, MOST_BYTES + BLOCK_BYTES * (MOST_READS + 1L));
  }

  /// All kinds for which the file is large enough.
  static List<CuFileReads> all(CuFileTrial trial, long fileBytes, boolean quick) {
    List<CuFileReads> all = new ArrayList<>();
    for (long kib : quick ? new long[] {64, 1024} : new long[] {4, 64, 1024, 8192}) {
      for (boolean aligned : quick ? new boolean[] {true} : new boolean[] {true, false}) {
        for (int depth : quick ? new int[] {8} : new int[] {1, 8, 32}) {
          for (Way way : Way.values()) {
            if (fileBytes >= 2 * ((kib << 10) + BLOCK_BYTES)) {
              all.add(new CuFileReads(trial, new Kind(way, kib << 10, depth, aligned), fileBytes));
            }
          }
        }
      }
    }
    return all;
  }

  static List<Part> parts(Kind kind, long fileBytes) {
    long bytes = kind.requestBytes();
    long count = Math.clamp(Math.min(MOST_BYTES, fileBytes) / bytes, 1, MOST_READS);
    long places = (fileBytes - bytes - BLOCK_BYTES) / BLOCK_BYTES;
    SplittableRandom random = new SplittableRandom(bytes);
    List<Part> parts = new ArrayList<>();
    for (long i = 0; i < count; i++) {
      long fileOffset = random.nextLong(places + 1) * BLOCK_BYTES + (kind.aligned() ? 0 : OFF_FILE);
      long memoryOffset = i * (bytes + BLOCK_BYTES) + (kind.aligned() ? 0 : OFF_MEMORY);
      parts.add(new Part(fileOffset, memoryOffset, bytes));
    }
    return parts;
  }

  Kind kind() {
    return kind;
  }

  long bytes() {
    return parts.size() * kind.requestBytes();
  }

  @Override
  public String name() {
    return kind.name();
  }

  @Override
  public String note() {
    return String.format(Locale.ROOT, "%s, %,d reads", trial.transport(), parts.size());
  }

  @Override
  public double run() {
    try (CuFileTrial.Reading reading = trial.prepare(kind.way(), parts, kind.depth())) {
      long start = System.nanoTime();
      reading.run();
      return (System.nanoTime() - start) / 1e9;
    }
  }
}
