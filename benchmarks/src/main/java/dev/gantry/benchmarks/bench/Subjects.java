// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.LongSupplier;

/// The files that a bench loads: the user's own file, or files of random bytes.
final class Subjects {
  private static final long MIB = 1 << 20;
  private static final long SMALL_BYTES = 50_000;
  private static final int MAX_SMALL = 20_000;

  /// The largest file is at most this part of memory: two shapes of it shall stay in the page cache
  /// beside what is loaded.
  private static final int MEMORY_SHARE = 6;

  /// The file's share of the disk, which also has two shapes, a peer's copy of each, and some room besides.
  private static final int DISK_SHARE = 6;

  /// The types that DJL's own reader knows.
  private static final Set<DType> OF_DJL =
      EnumSet.of(DType.F32, DType.F64, DType.I32, DType.I64, DType.I8, DType.U8);

  private Subjects() {}

  /// Sizes by default: what fits memory and disk.
  ///
  /// @param deviceBytes free memory of the GPU; unlimited without one
  static List<Long> sizes(Device device, boolean quick, long deviceBytes, Path folder)
      throws IOException {
    long room =
        Math.min(
            Math.min(MachineProbe.availableBytes(), deviceBytes) / MEMORY_SHARE,
            Files.getFileStore(folder).getUsableSpace() / DISK_SHARE);
    List<Long> wanted =
        device instanceof Device.Cuda
            ? quick ? List.of(64 * MIB, 1024 * MIB) : List.of(64 * MIB, 1024 * MIB, 8192 * MIB)
            : quick ? List.of(64 * MIB, 256 * MIB) : List.of(64 * MIB, 512 * MIB);
    List<Long> fitting = wanted.stream().filter(size -> size <= room).toList();
    return fitting.isEmpty() ? List.of(Math.max(MIB, room / MIB * MIB)) : fitting;
  }

  /// @param leftOut describes the files that were not made in time
  record Made(List<Subject> subjects, List<String> leftOut) {}

  /// Makes two files of each size, the smaller ones first: one tensor, and many small ones. Those that
  /// would take more than half of the time that is left are left out, except for the first two.
  ///
  /// @param copies how many copies of each file other contenders make
  /// @param end the time at which the budget ends, by `clock` in nanoseconds
  /// @throws IOException if the disk has too little space
  static Made make(Path folder, List<Long> sizes, int copies, long end, LongSupplier clock)
      throws IOException {
    long needed = sizes.stream().mapToLong(size -> 2 * size * (1 + copies)).sum();
    needed += sizes.stream().mapToLong(size -> size).max().orElse(0);
    long room = Files.getFileStore(folder).getUsableSpace();
    if (room < needed + (needed >> 3)) {
      throw new IOException(
          String.format(
              Locale.ROOT,
              "%s has room for %,d MB, the bench needs %,d",
              folder,
              room / 1_000_000,
              (needed + (needed >> 3)) / 1_000_000));
    }
    List<Subject> subjects = new ArrayList<>();
    List<String> leftOut = new ArrayList<>();
    long begin = clock.getAsLong();
    long madeBytes = 0;
    for (long size : sizes.stream().sorted().toList()) {
      long now = clock.getAsLong();
      if (madeBytes > 0 && (double) (now - begin) / madeBytes * 2 * size > (end - now) / 2.0) {
        leftOut.add(String.format(Locale.ROOT, "files of %,d MiB", size / MIB));
        continue;
      }
      for (int tensors : new int[] {1, Math.clamp(size / SMALL_BYTES, 2, MAX_SMALL)}) {
        subjects.add(make(folder, size, tensors));
        madeBytes += size;
      }
    }
    return new Made(subjects, leftOut);
  }

  private static Subject make(Path folder, long size, int tensors) throws IOException {
    Path file = folder.resolve("bench-" + size / MIB + "-" + tensors + ".safetensors");
    long bytes = RandomCheckpoint.make(file, size, tensors, "F32");
    String what =
        String.format(
            Locale.ROOT,
            "%,d MiB in %s",
            size / MIB,
            tensors == 1 ? "1 tensor" : String.format(Locale.ROOT, "%,d tensors", tensors));
    return new Subject(file, what, bytes, tensors == 1, true);
  }

  /// A user's own file.
  static Subject of(Path file) {
    Collection<StoredTensor> tensors =
        SafetensorsOpener.open(GantrySession.shared(), file).tensors().values();
    long bytes = tensors.stream().mapToLong(StoredTensor::bytes).sum();
    String what =
        String.format(
            Locale.ROOT,
            "%s, %,.0f MiB in %,d tensor%s",
            file.getFileName(),
            (double) bytes / MIB,
            tensors.size(),
            tensors.size() == 1 ? "" : "s");
    return new Subject(
        file,
        what,
        bytes,
        true,
        tensors.stream().allMatch(tensor -> OF_DJL.contains(tensor.dtype())));
  }
}
