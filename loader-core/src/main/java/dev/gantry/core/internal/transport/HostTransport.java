// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// `host`: reads directly into host memory.
final class HostTransport {
  private HostTransport() {}

  /// @param scatter the calling thread's
  /// @param direct whether to go past the page cache
  /// @param sums adds the bytes to checksums; null for none
  /// @return whether the bytes went past the page cache
  static boolean read(
      SourceFile file,
      Read read,
      Target target,
      boolean direct,
      HostScatter scatter,
      @Nullable KnownChecksums sums) {
    return switch (target) {
      case Target.InSlab in -> read(file, read, place(read, in), direct, sums);
      case Target.OnEach _ -> throw new IllegalStateException("what several devices get is staged");
      case Target.Scattered(var pieces) -> {
        boolean went = scatter.read(file, read, pieces, direct);
        sum(read, target, sums);
        yield went;
      }
    };
  }

  /// Reads into memory of the read's length. If checksums are wanted, reads through the page cache go in steps, so that
  /// each step is still in the processor's cache when it is added.
  static boolean read(
      SourceFile file,
      Read read,
      MemorySegment place,
      boolean direct,
      @Nullable KnownChecksums sums) {
    if (sums == null) {
      return file.read(place, read.fileOffset(), read.required(), direct);
    }
    boolean inSteps = !direct && file.isLocal();
    long step = inSteps ? KnownChecksums.STEP_BYTES : read.length();
    boolean went = true;
    for (long done = 0; done < read.required(); done += step) {
      long required = Math.min(step, read.required() - done);
      MemorySegment part = place.asSlice(done, Math.min(step, read.length() - done));
      went &= file.read(part, read.fileOffset() + done, required, direct);
      sums.add(read.file(), read.fileOffset() + done, part.asSlice(0, required));
    }
    return went;
  }

  /// Adds the bytes of a read to checksums, in the memory that they were read into.
  static void sum(Read read, Target target, @Nullable KnownChecksums sums) {
    if (sums == null) {
      return;
    }
    switch (target) {
      case Target.InSlab in ->
          sums.add(read.file(), read.fileOffset(), place(read, in).asSlice(0, read.required()));
      case Target.OnEach _ -> throw new IllegalStateException("what several devices get is staged");
      // Checksums are of whole tensors, and a piece of several rows has only a part of one.
      case Target.Scattered(var pieces) ->
          pieces.stream()
              .filter(piece -> piece.rows().rows() == 1)
              .forEach(piece ->
                  sums.add(
                      read.file(),
                      read.fileOffset() + piece.rows().source(),
                      HostScatter.row(piece)));
    }
  }

  /// The memory that a read fills.
  static MemorySegment place(Read read, Target.InSlab target) {
    if (!(target.slab() instanceof HostSlab slab)) {
      throw new MisuseException("transport host cannot fill memory of " + target.slab().device());
    }
    return slab.segment().asSlice(read.slabOffset(), read.length());
  }
}
