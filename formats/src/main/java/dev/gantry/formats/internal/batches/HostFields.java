// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.util.ArrayList;
import java.util.List;

/// The fields of a batch that the CPU writes, split into parts that are each worth a thread.
final class HostFields {
  /// The bytes of one part: writing them takes only a few times as long as waking a thread.
  private static final long PART_BYTES = 256L << 10;

  private static final int MAX_PARTS = 16;

  private final SampleCatalogue store;
  private final List<SampleRun> runs;
  private final int samples;
  private final long epoch;
  private final List<Target> targets = new ArrayList<>();
  private long bytes;

  private record Target(int field, long offset, long rowBytes) {}

  HostFields(SampleCatalogue store, List<SampleRun> runs, int samples, long epoch) {
    this.store = store;
    this.runs = runs;
    this.samples = samples;
    this.epoch = epoch;
  }

  /// Adds a field, and returns its offset in the memory that the CPU writes.
  long add(int field) {
    long offset = bytes;
    long rowBytes = store.fields().get(field).sampleBytes();
    targets.add(new Target(field, offset, rowBytes));
    bytes += BatchLayout.align(samples * rowBytes, BatchLayout.ALIGNMENT);
    return offset;
  }

  long bytes() {
    return bytes;
  }

  HostWrites at(long slotOffset) {
    int parts = (int) Math.min(Math.ceilDiv(bytes, PART_BYTES), Math.min(samples, MAX_PARTS));
    List<HostWrites.HostWriter> writers = new ArrayList<>();
    for (int part = 0; part < parts; part++) {
      writers.add(
          part((int) ((long) samples * part / parts), (int) ((long) samples * (part + 1) / parts)));
    }
    return new HostWrites(slotOffset, bytes, writers);
  }

  /// Returns a writer of the samples from `from` (inclusive) to `to` (exclusive).
  private HostWrites.HostWriter part(int from, int to) {
    return memory -> {
      int at = 0;
      for (SampleRun run : runs) {
        int first = Math.max(from, at);
        int count = Math.min(to, at + run.count()) - first;
        if (count > 0) {
          SampleRun cut = new SampleRun(run.file(), run.first() + (first - at), count);
          for (Target target : targets) {
            store.write(
                target.field(), cut, epoch, memory, target.offset() + first * target.rowBytes());
          }
        }
        at += run.count();
      }
    };
  }
}
