// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import java.util.List;

/// Where the fields of so many samples lie in a shard, as this writer lays them out: each on the
/// first page after the one ahead. Immutable.
final class ShardLayout {
  private final long samples;
  private final long[] offsets;
  private final long bytes;

  private ShardLayout(long samples, long[] offsets, long bytes) {
    this.samples = samples;
    this.offsets = offsets;
    this.bytes = bytes;
  }

  /// @throws MisuseException if that is more than a file can hold
  static ShardLayout of(List<Field> fields, long samples) {
    long[] offsets = new long[fields.size()];
    long end = 0;
    try {
      for (int i = 0; i < offsets.length; i++) {
        offsets[i] = Math.addExact(end, ShardSet.PAGE_BYTES - 1) & -ShardSet.PAGE_BYTES;
        end = Math.addExact(offsets[i], Math.multiplyExact(samples, fields.get(i).sampleBytes()));
      }
    } catch (ArithmeticException _) {
      throw new MisuseException(samples + " samples are more than a file can hold");
    }
    return new ShardLayout(samples, offsets, end);
  }

  long samples() {
    return samples;
  }

  /// The file's size.
  long bytes() {
    return bytes;
  }

  long offset(int field) {
    return offsets[field];
  }

  long[] offsets() {
    return offsets.clone();
  }

  /// From the start of a field to the start of the next one, or to the end of the file.
  long extentBytes(int field) {
    return (field + 1 < offsets.length ? offsets[field + 1] : bytes) - offsets[field];
  }
}
