// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.internal.checksum.BlockChecksums;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonWriter;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntFunction;

/// The plan of a set that is being written: its fields, the number of samples of a shard, and the names and
/// blocks of its files. A set that passes its checks can be read again. Immutable.
final class NewShardSet {
  private static final int SUM_DIGITS = 8;

  /// An upper bound, in bytes, of a shard's entry without its offsets and checksums.
  private static final long ENTRY_BYTES = 256;

  private static final long OFFSET_BYTES = 24;

  private final Path index;
  private final IntFunction<Path> files;
  private final List<Field> fields;
  private final ShardOptions options;
  private final ShardLayout capacity;
  private final long mostShards;

  /// @param index the path of the index, which lies beside the shards
  /// @param files the path of each shard by its number, before the set is finished
  /// @throws MisuseException if there are no fields, too many, two of one name, or a field that cannot be
  ///     read again; if a shard has more blocks than an index can hold, or the notes are too long
  NewShardSet(Path index, IntFunction<Path> files, List<Field> fields, ShardOptions options) {
    this.index = index;
    this.files = files;
    this.fields = List.copyOf(fields);
    this.options = options;
    checkFields();
    capacity = ShardLayout.of(fields, samplesPerShard());
    mostShards = countShards();
  }

  /// Plans a set that is all of a folder's shards.
  static NewShardSet of(Path folder, List<Field> fields, ShardOptions options) {
    MisuseException.requireGiven("folder", folder);
    for (Field field : MisuseException.requireGiven("fields", fields)) {
      MisuseException.requireGiven("a field", field);
    }
    MisuseException.requireGiven("options", options);
    Path work = JointFiles.unfinished(folder);
    return new NewShardSet(
        ShardFolder.index(folder), number -> ShardFolder.shard(work, number), fields, options);
  }

  private void checkFields() {
    if (fields.isEmpty() || fields.size() > ShardSet.MAX_FIELDS) {
      throw new MisuseException(
          "samples need 1 to " + ShardSet.MAX_FIELDS + " fields, not " + fields.size());
    }
    Set<String> names = new HashSet<>();
    for (Field field : fields) {
      JsonWriter.requireText("a field's name", field.name());
      if (!names.add(field.name())) {
        throw new MisuseException("two fields have the name '" + field.name() + "'");
      }
      if (field.shape().rank() > ShardSet.MAX_RANK) {
        throw new MisuseException(
            "field '" + field.name() + "' has more than " + ShardSet.MAX_RANK + " dimensions");
      }
    }
  }

  private long samplesPerShard() {
    if (options.samplesPerShard > 0) {
      return options.samplesPerShard;
    }
    long sampleBytes = 0;
    for (Field field : fields) {
      sampleBytes += Math.min(field.sampleBytes(), Long.MAX_VALUE - sampleBytes);
    }
    long padding = (fields.size() - 1L) * ShardSet.PAGE_BYTES;
    long fitting = (options.shardBytes - padding) / Math.max(1, sampleBytes);
    return Math.clamp(fitting, 1, ShardOptions.MAX_SAMPLES_PER_SHARD);
  }

  private long countShards() {
    long blocks = Math.ceilDiv(capacity.bytes(), options.blockBytes);
    if (blocks > JsonReader.MAX_STRING_CHARACTERS / SUM_DIGITS) {
      throw new MisuseException(
          "a shard of " + blocks + " blocks; choose larger blocks or fewer samples per shard");
    }
    long empty = set(List.of()).toJson().length;
    long byBytes =
        (ShardSet.MAX_INDEX_BYTES - ENTRY_BYTES - empty) / mostEntryBytes(fields.size(), blocks);
    long byEntries =
        (ShardSet.MAX_ENTRIES - fields.size() - options.metadata.size()) / (fields.size() + 1L);
    return Math.clamp(Math.min(byBytes, byEntries), 0, ShardSet.MAX_SHARDS);
  }

  /// The most bytes that a shard takes in the index.
  static long mostEntryBytes(int fields, long blocks) {
    return ENTRY_BYTES + OFFSET_BYTES * fields + SUM_DIGITS * blocks;
  }

  Path folder() {
    return index.resolveSibling("");
  }

  List<Field> fields() {
    return fields;
  }

  ShardOptions options() {
    return options;
  }

  /// The layout of a full shard.
  ShardLayout capacity() {
    return capacity;
  }

  /// @throws MisuseException if the index has no room for a shard of this number
  void requireRoom(long number) {
    if (number >= mostShards) {
      throw new MisuseException(
          "no room for more than "
              + mostShards
              + " shards; choose more samples per shard or larger blocks");
    }
  }

  /// Returns a shard's file to be written, at its place before the set is finished.
  ///
  /// @param contents the fields' values and the padding between them, in the order of the file
  NewFile file(int number, List<Source> contents) {
    return new NewFile(files.apply(number), cut(contents));
  }

  /// Cuts the contents at block boundaries, since a write reports the checksum of each part, and each block
  /// needs its own.
  private List<Source> cut(List<Source> contents) {
    List<Source> parts = new ArrayList<>();
    long left = options.blockBytes;
    for (Source source : contents) {
      for (long done = 0; done < source.length(); ) {
        long step = Math.min(left, source.length() - done);
        parts.add(source.slice(done, step));
        done += step;
        left = left == step ? options.blockBytes : left - step;
      }
    }
    return parts;
  }

  /// Returns the shard that was written.
  Shard shard(NewFile file, ShardLayout layout, WriteReport.FileReport report) {
    BlockChecksums sums = new BlockChecksums(layout.bytes(), options.blockBytes);
    List<Integer> parts = report.checksums().orElseThrow().parts();
    for (int i = 0; i < parts.size(); i++) {
      sums.add(parts.get(i), file.parts().get(i).length());
    }
    long[] offsets = layout.offsets().stream().mapToLong(Long::longValue).toArray();
    Path named = index.resolveSibling(file.file().getFileName());
    return new Shard(Location.of(named), layout.samples(), layout.bytes(), offsets, sums.sums());
  }

  ShardSet set(List<Shard> shards) {
    return new ShardSet(Location.of(index), options.blockBytes, fields, options.metadata, shards);
  }

  /// @param values the values by name; the names must be those of the fields
  /// @throws MisuseException if a field is missing or unknown
  void checkNames(Map<String, ?> values) {
    MisuseException.requireGiven("values", values);
    for (Field field : fields) {
      if (values.get(field.name()) == null) {
        throw new MisuseException("field '" + field.name() + "' has no value");
      }
    }
    if (values.size() > fields.size()) {
      List<String> known = fields.stream().map(Field::name).toList();
      String unknown =
          values.keySet().stream().filter(name -> !known.contains(name)).findFirst().orElseThrow();
      throw new MisuseException("there is no field '" + unknown + "'; the fields are " + known);
    }
  }

  /// @throws MisuseException if the values have not the size of `samples` samples, or lie in an array of
  ///     another type
  static void checkValues(Field field, long samples, Source values) {
    checkSize(field, samples, values.length());
    if (values instanceof Memory.OnHost(MemorySegment memory)) {
      checkType(field, memory);
    }
  }

  /// Checks one sample's value, as [#checkValues(Field, long, Source)] does.
  static void checkValue(Field field, MemorySegment value) {
    checkSize(field, 1, value.byteSize());
    checkType(field, value);
  }

  /// Checks the type of an array: bytes fit any field, numbers only a field of their type.
  private static void checkType(Field field, MemorySegment values) {
    DType dtype = field.dtype();
    Optional<Object> array = values.heapBase();
    if (array.isEmpty() || field.sampleBytes() == 0) {
      return;
    }
    boolean fits =
        switch (array.get()) {
          case byte[] _ -> true;
          case short[] _ ->
              dtype == DType.I16 || dtype == DType.U16 || dtype == DType.F16 || dtype == DType.BF16;
          case char[] _ -> dtype == DType.U16;
          case int[] _ -> dtype == DType.I32 || dtype == DType.U32;
          case long[] _ -> dtype == DType.I64 || dtype == DType.U64;
          case float[] _ -> dtype == DType.F32 || dtype == DType.C64;
          case double[] _ -> dtype == DType.F64;
          case Object _ -> true;
        };
    if (!fits) {
      throw new MisuseException(
          "field '"
              + field.name()
              + "' is "
              + dtype
              + "; its values cannot come from a "
              + array.get().getClass().getSimpleName());
    }
  }

  private static void checkSize(Field field, long samples, long bytes) {
    long each = field.sampleBytes();
    if (each == 0 ? bytes != 0 : bytes % each != 0 || bytes / each != samples) {
      throw new MisuseException(
          String.format(
              "field '%s': %d bytes for %d samples of %d bytes each",
              field.name(), bytes, samples, each));
    }
  }
}
