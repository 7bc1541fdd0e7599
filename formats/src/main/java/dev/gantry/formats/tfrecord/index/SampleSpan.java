package dev.gantry.formats.tfrecord.index;

import dev.gantry.formats.spi.FieldSource;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Over how many bytes of its record the fields of a sample are spread.
final class SampleSpan {
  private SampleSpan() {}

  /// The most over all records, of fields that are read from the files; 0 where there are none.
  static long most(List<TfRecordIndex> shards, List<StoredField> fields) {
    List<StoredField> filed =
        fields.stream()
            .filter(field -> field.source() instanceof FieldSource.Filed)
            .filter(field -> field.field().sampleBytes() > 0)
            .toList();
    long most = 0;
    for (TfRecordIndex shard : shards) {
      if (!filed.isEmpty() && shard.summary().records() > 0) {
        most = Math.max(most, most(shard, filed));
      }
    }
    return most;
  }

  private static long most(TfRecordIndex shard, List<StoredField> filed) {
    MemorySegment[] offsets =
        filed.stream()
            .map(field -> shard.offsets(field.field().name()).bytes())
            .toArray(MemorySegment[]::new);
    long[] lengths = filed.stream().mapToLong(field -> field.field().sampleBytes()).toArray();
    long most = 0;
    for (long record = 0; record < shard.summary().records(); record++) {
      long first = Long.MAX_VALUE;
      long end = 0;
      for (int i = 0; i < offsets.length; i++) {
        long start = MappedColumn.unsignedInt(offsets[i], record);
        first = Math.min(first, start);
        end = Math.max(end, start + lengths[i]);
      }
      most = Math.max(most, end - first);
    }
    return most;
  }
}
