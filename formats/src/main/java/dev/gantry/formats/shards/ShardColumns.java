// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// A shard that is being filled. Its columns lie in a slab as they lie in the file of a full shard, so a
/// full shard is written straight from the slab. Not thread-safe.
final class ShardColumns {
  private final List<Field> fields;
  private final ShardLayout capacity;
  private final HostSlab slab;
  private long samples;

  /// @param capacity the layout of a full shard
  /// @param slab has the capacity's size or more; the caller keeps it
  ShardColumns(List<Field> fields, ShardLayout capacity, HostSlab slab) {
    this.fields = fields;
    this.capacity = capacity;
    this.slab = slab;
  }

  HostSlab slab() {
    return slab;
  }

  /// How many more samples the shard has room for.
  long room() {
    return capacity.samples() - samples;
  }

  ShardLayout layout() {
    return ShardLayout.of(fields, samples);
  }

  /// Copies one sample, whose names and sizes the caller has checked.
  void add(Map<String, MemorySegment> sample) {
    for (int i = 0; i < fields.size(); i++) {
      MemorySegment value = Objects.requireNonNull(sample.get(fields.get(i).name()));
      place(i, 1).copyFrom(value);
    }
    samples++;
  }

  /// Copies some samples from files or any memory; the caller has checked names and sizes.
  ///
  /// @param values the values of all samples by field
  /// @param first the first of these samples to copy
  void add(GantrySession session, Map<String, Source> values, long first, long count) {
    for (int i = 0; i < fields.size(); i++) {
      Field field = fields.get(i);
      Source all = Objects.requireNonNull(values.get(field.name()));
      long bytes = field.sampleBytes();
      if (bytes > 0) {
        session.copy(all.slice(first * bytes, count * bytes), place(i, count));
      }
    }
    samples += count;
  }

  private MemorySegment place(int field, long count) {
    long bytes = fields.get(field).sampleBytes();
    return slab.segment().asSlice(capacity.offsets().get(field) + samples * bytes, count * bytes);
  }

  /// Returns the contents of the file, after it has cleared the padding, where a fuller shard may have
  /// lain.
  List<Source> contents() {
    ShardLayout layout = layout();
    List<Source> contents = new ArrayList<>();
    for (int i = 0; i < fields.size(); i++) {
      MemorySegment column =
          slab.segment().asSlice(capacity.offsets().get(i), layout.extentBytes(i));
      column.asSlice(samples * fields.get(i).sampleBytes()).fill((byte) 0);
      contents.add(new Memory.OnHost(column));
    }
    return contents;
  }
}
