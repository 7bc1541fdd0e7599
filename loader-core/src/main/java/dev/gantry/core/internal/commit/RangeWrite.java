// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.TransferEngine;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Writes ranges of one file in place, from memory. May be used once, by one thread.
///
/// 1. Write whole blocks past the page cache if the file system can. Write the bytes before and
///    after the whole blocks through the page cache, since the other bytes of the blocks that they
///    share must not change.
/// 2. Synchronise the file, and its folder, since the write may have created the file.
///
/// The ranges do not change all at once: after a failure or a crash, some ranges or parts of them may be
/// written. Bytes outside of the ranges never change.
public final class RangeWrite {
  /// The memory for one range of the file.
  ///
  /// @param offset the file offset of the first byte
  public record Range(long offset, Memory memory) {
    long end() {
      return offset + memory.length();
    }
  }

  private final TransferEngine engine;
  private final Path file;
  private final WriteOptions options;
  private final WorkerThreads workers;
  private final List<Range> pieces = new ArrayList<>();
  private final long total;
  private final TransferCounter counter;
  private final Set<Device.Cuda> devices = new LinkedHashSet<>();

  /// The pinned buffers to which device memory is copied; null if all bytes are on the host.
  private final StagingPool.@Nullable Share staging;

  /// @throws MisuseException if two ranges overlap, or a range's offset is negative or too large
  public RangeWrite(TransferEngine engine, Path file, List<Range> ranges, WriteOptions options) {
    this.engine = engine;
    this.file = file;
    this.options = options;
    requireApart(file, ranges);
    for (Range range : ranges) {
      cut(range, options.requestBytes(), pieces);
      if (range.memory() instanceof Memory.OnDevice memory) {
        devices.add(memory.device());
      }
    }
    // The buffers are pinned for every CUDA context, so the buffers of one device serve all
    // devices.
    staging = devices.isEmpty() ? null : engine.stagingPool(devices.iterator().next()).share();
    counter = new TransferCounter(engine.counters());
    workers = new WorkerThreads("write", file::toString, "gantry-writer-", options.cancellation());
    if (staging != null) {
      workers.whenFailed(staging::wake);
    }
    total = ranges.stream().mapToLong(range -> range.memory().length()).sum();
  }

  private static void requireApart(Path file, List<Range> ranges) {
    long end = 0;
    for (Range range : ranges.stream().sorted(Comparator.comparingLong(Range::offset)).toList()) {
      Extent _ = new Extent(file, range.offset(), range.memory().length());
      if (range.memory().length() > 0 && range.offset() < end) {
        throw new MisuseException(file + ": two writes overlap at offset " + range.offset());
      }
      end = Math.max(end, range.end());
    }
  }

  /// Cuts a range at the file's block boundaries, so that all pieces except the first and the last
  /// are whole blocks.
  private static void cut(Range range, long requestBytes, List<Range> pieces) {
    for (long at = range.offset(); at < range.end(); ) {
      long step = at % BLOCK_BYTES != 0 ? BLOCK_BYTES - at % BLOCK_BYTES : requestBytes;
      long next;
      if (step > range.end() - at) {
        long blocks = range.end() - range.end() % BLOCK_BYTES;
        next = blocks > at ? blocks : range.end();
      } else {
        next = at + step;
      }
      pieces.add(new Range(at, range.memory().slice(at - range.offset(), next - at)));
      at = next;
    }
  }

  /// Writes all ranges, and returns when they are on the disk.
  ///
  /// @throws TransferException if the file cannot be opened or written, or a device fails
  public TransferReport run() {
    long start = System.nanoTime();
    try (TargetFile target = TargetFile.inPlace(engine.calls(), file, options.pageCache())) {
      // The copies use a stream of their own, so work that is queued on other streams must end
      // first.
      devices.forEach(device -> CudaContext.of(device).synchronize());
      workers.forEach(
          options.writers(),
          pieces,
          piece -> write(target, piece),
          () -> options.progress().onProgress(counter.bytes(), total));
      target.sync();
      new Folders(engine.calls()).sync(Folders.parent(file));
    }
    return counter.report(
        Math.min(options.writers(), pieces.size()),
        List.of(),
        Duration.ofNanos(System.nanoTime() - start));
  }

  private void write(TargetFile target, Range piece) {
    switch (piece.memory()) {
      case Memory.OnHost(MemorySegment segment)
          when segment.isNative()
              && (target.takes(segment, piece.offset())
                  || (piece.offset() | segment.byteSize()) % BLOCK_BYTES != 0) ->
          write(target, segment, piece.offset(), Transport.HOST);
      case Memory.OnHost(MemorySegment segment) -> {
        HostSlab buffer = HostSlab.allocate(segment.byteSize());
        try {
          MemorySegment bytes = buffer.segment().asSlice(0, segment.byteSize()).copyFrom(segment);
          write(target, bytes, piece.offset(), Transport.HOST);
        } finally {
          buffer.release();
        }
      }
      case Memory.OnDevice memory -> {
        long[] at = {piece.offset()};
        SourceReading.ofDevice(
            memory,
            Objects.requireNonNull(staging),
            () -> !workers.hasFailed(),
            bytes -> {
              write(target, bytes, at[0], Transport.STAGED);
              at[0] += bytes.byteSize();
            });
      }
    }
  }

  private void write(TargetFile target, MemorySegment bytes, long offset, Transport transport) {
    counter.addWritten(transport, bytes.byteSize(), target.write(bytes, offset));
  }
}
