// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;
import static dev.gantry.core.internal.plan.PlanLimits.ceiling;
import static dev.gantry.core.internal.plan.PlanLimits.floor;

import dev.gantry.core.Memory;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.memory.Target.Landing;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// `host`, into memory that lies as it lies. Reads through the page cache take any address. Those past
/// it need blocks: what does not lie on them comes through a buffer. For one thread.
final class HostScatter implements AutoCloseable {
  /// Shorter pieces of one read come together: a copy costs less than a call.
  private static final long SHORT_BYTES = 32 << 10;

  private @Nullable HostSlab bounce;

  /// @param direct whether to go past the page cache
  /// @return whether the bytes went past the page cache
  boolean read(SourceFile file, Read read, List<Landing> landings, boolean direct) {
    long wanted = landings.stream().mapToLong(Landing::bytes).sum();
    Landing first = landings.getFirst();
    boolean isShort = landings.size() > 1 && wanted / landings.size() < SHORT_BYTES;
    if (isShort || landings.stream().anyMatch(landing -> !segment(landing).isNative())) {
      return throughBuffer(file, read, landings, direct);
    }
    if (!direct) {
      for (Landing landing : landings) {
        boolean _ =
            file.read(segment(landing), read.fileOffset() + landing.from(), landing.bytes(), false);
      }
      return false;
    }
    if (landings.size() == 1 && liesOnBlocks(first)) {
      return onBlocks(file, read, first);
    }
    return throughBuffer(file, read, landings, true);
  }

  /// As [#read(SourceFile, Read, List, boolean)], into slabs of the host.
  boolean read(SourceFile file, Read read, Target.Strips strips, boolean direct) {
    Target.Rows first = strips.rows().getFirst();
    if (!direct && strips.rows().size() == 1 && first.rows() == 1) {
      return file.read(
          segment(first).asSlice(first.offset(), first.bytes()),
          read.fileOffset() + first.from(),
          first.bytes(),
          false);
    }
    MemorySegment buffer = buffer(read.length());
    boolean went = file.read(buffer, read.fileOffset(), read.required(), direct);
    strips.rows().forEach(rows -> scatter(buffer, rows));
    return went;
  }

  /// @param bytes those of the read
  static void scatter(MemorySegment bytes, Target.Rows rows) {
    MemorySegment target = segment(rows);
    for (long row = 0; row < rows.rows(); row++) {
      MemorySegment.copy(
          bytes,
          rows.from() + row * rows.pitch(),
          target,
          rows.offset() + row * rows.targetPitch(),
          rows.bytes());
    }
  }

  private static MemorySegment segment(Target.Rows rows) {
    return switch (rows.slab()) {
      case CpuSlab slab -> slab.segment();
      case DeviceSlab slab ->
          throw new IllegalStateException("transport host cannot fill memory of " + slab.device());
    };
  }

  static MemorySegment segment(Landing landing) {
    return switch (landing.memory()) {
      case Memory.OnHost(MemorySegment segment) -> segment;
      case Memory.OnDevice device ->
          throw new IllegalStateException(
              "transport host cannot fill memory of " + device.device());
    };
  }

  private static boolean liesOnBlocks(Landing landing) {
    long start = ceiling(landing.from());
    return floor(landing.from() + landing.bytes()) - start >= SHORT_BYTES
        && (segment(landing).address() + start - landing.from()) % BLOCK_BYTES == 0;
  }

  /// Whole blocks go straight to their place, those at the ends through the buffer.
  private boolean onBlocks(SourceFile file, Read read, Landing landing) {
    long start = ceiling(landing.from());
    long end = floor(landing.from() + landing.bytes());
    boolean direct =
        file.read(
            segment(landing).asSlice(start - landing.from(), end - start),
            read.fileOffset() + start,
            end - start,
            true);
    if (landing.from() < start) {
      direct &= edge(file, read, landing, start - BLOCK_BYTES);
    }
    if (end < landing.from() + landing.bytes()) {
      direct &= edge(file, read, landing, end);
    }
    return direct;
  }

  /// @param block bytes from the read's start
  private boolean edge(SourceFile file, Read read, Landing landing, long block) {
    MemorySegment buffer = buffer(BLOCK_BYTES);
    long required = Math.min(BLOCK_BYTES, read.required() - block);
    boolean direct = file.read(buffer, read.fileOffset() + block, required, true);
    long from = Math.max(block, landing.from());
    long bytes = Math.min(block + BLOCK_BYTES, landing.from() + landing.bytes()) - from;
    segment(landing)
        .asSlice(from - landing.from(), bytes)
        .copyFrom(buffer.asSlice(from - block, bytes));
    return direct;
  }

  private boolean throughBuffer(
      SourceFile file, Read read, List<Landing> landings, boolean direct) {
    MemorySegment buffer = buffer(read.length());
    boolean went = file.read(buffer, read.fileOffset(), read.required(), direct);
    scatter(buffer, landings);
    return went;
  }

  /// @param bytes those of the read
  static void scatter(MemorySegment bytes, List<Landing> landings) {
    for (Landing landing : landings) {
      segment(landing).copyFrom(bytes.asSlice(landing.from(), landing.bytes()));
    }
  }

  private MemorySegment buffer(long bytes) {
    HostSlab slab = bounce;
    if (slab == null || slab.size() < bytes) {
      close();
      slab = HostSlab.allocate(bytes);
      bounce = slab;
    }
    return slab.segment().asSlice(0, bytes);
  }

  @Override
  public void close() {
    HostSlab slab = bounce;
    bounce = null;
    if (slab != null) {
      slab.release();
    }
  }
}
