// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import java.util.ArrayList;
import java.util.List;

/// The offsets of the fields in a shard of some number of samples: each field begins on the first
/// page after the field before it.
///
/// @param offsets the offsets of the fields, in bytes
/// @param bytes the size of the file
record ShardLayout(long samples, List<Long> offsets, long bytes) {
  ShardLayout {
    offsets = List.copyOf(offsets);
  }

  /// @throws MisuseException if the samples need more bytes than a file can hold
  static ShardLayout of(List<Field> fields, long samples) {
    List<Long> offsets = new ArrayList<>(fields.size());
    long end = 0;
    try {
      for (Field field : fields) {
        long offset = Math.addExact(end, ShardSet.PAGE_BYTES - 1) & -ShardSet.PAGE_BYTES;
        offsets.add(offset);
        end = Math.addExact(offset, Math.multiplyExact(samples, field.sampleBytes()));
      }
    } catch (ArithmeticException _) {
      throw new MisuseException(samples + " samples are more than a file can hold");
    }
    return new ShardLayout(samples, offsets, end);
  }

  /// The bytes from the start of a field to the start of the next one, or to the end of the file.
  long extentBytes(int field) {
    return (field + 1 < offsets.size() ? offsets.get(field + 1) : bytes) - offsets.get(field);
  }
}
