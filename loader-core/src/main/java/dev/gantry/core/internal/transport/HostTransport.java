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

/// `host`: reads straight into host memory.
final class HostTransport {
  private HostTransport() {}

  /// @param scatter of the calling thread
  /// @param direct whether to go past the page cache
  /// @param sums takes the bytes into account; null for none
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

  /// Reads into memory of the read's length. What is to be summed comes through the page cache in
  /// steps, each of which is in the processor's own cache when it is summed.
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

  /// Takes the bytes of a read into account that lie where they belong.
  static void sum(Read read, Target target, @Nullable KnownChecksums sums) {
    if (sums == null) {
      return;
    }
    switch (target) {
      case Target.InSlab in ->
          sums.add(read.file(), read.fileOffset(), place(read, in).asSlice(0, read.required()));
      case Target.OnEach _ -> throw new IllegalStateException("what several devices get is staged");
      // Sums are of whole tensors, of which several rows are only a part.
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
