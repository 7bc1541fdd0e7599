// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.digest.TensorDigests;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Writes raw tensor shards as TFRecord. Each sample becomes a record, as [SampleExamples] encodes
/// it. The shards' checksums are verified first, because the records get new checksums.
///
/// @param output one file, or the common prefix of the names of several files
/// @param count the number of files, which get equal parts of the samples in their order; null for
///     one file
public record ShardsToRecords(
    ShardSet set, Path output, @Nullable Integer count, Compression compression) {
  /// How many bytes are read at a time; a larger sample is read whole.
  private static final long CHUNK_BYTES = 8L << 20;

  /// Receives the records of the samples in their order.
  @FunctionalInterface
  private interface RecordSink {
    void write(int file, MemorySegment record);
  }

  public WrittenFiles run(GantrySession session) throws IOException {
    List<Path> targets = targets();
    checkOutput(targets);
    SampleExamples examples = new SampleExamples(set.fields());
    TensorDigests.verify(session, set);
    long start = System.nanoTime();
    if (count == null) {
      try (TfRecordWriter writer = TfRecordWriter.create(session, output, compression)) {
        write(session, examples, 1, (_, record) -> writer.write(record));
        writer.commit();
      }
    } else {
      try (TfRecordShards writer =
          TfRecordShards.create(session, folder(), name(), count, compression)) {
        write(session, examples, count, writer::write);
        writer.commit();
      }
    }
    return WrittenFiles.of(output, targets, start);
  }

  private List<Path> targets() {
    if (count == null) {
      return List.of(output);
    }
    MisuseException.requireRange("--shards", count, 1, TfRecordShards.MAX_SHARDS);
    return TfRecordShards.files(folder(), name(), count);
  }

  private Path folder() {
    return Objects.requireNonNullElse(output.getParent(), Path.of(""));
  }

  private String name() {
    return String.valueOf(output.getFileName());
  }

  private void checkOutput(List<Path> targets) throws IOException {
    List<Path> inputs =
        Stream.concat(Stream.of(set.location()), set.shards().stream().map(Shard::location))
            .filter(Location.Local.class::isInstance)
            .map(Location::path)
            .toList();
    for (Path target : targets) {
      if (target.toString().endsWith(WeightsConversion.ONE_FILE)) {
        throw new MisuseException(
            "OUT must not be a safetensors file, because raw tensor shards become TFRecord (was "
                + target
                + ")");
      }
      if (Files.isDirectory(target)) {
        throw new MisuseException("OUT must be a TFRecord file, not a folder (was " + target + ")");
      }
      for (Path input : inputs) {
        if (Files.exists(target) && Files.isSameFile(input, target)) {
          throw new MisuseException("OUT must not be a file of IN (was " + target + ")");
        }
      }
    }
  }

  /// Distributes the samples over `files` files in their order, so that each file holds
  /// consecutive samples.
  private void write(GantrySession session, SampleExamples examples, int files, RecordSink sink) {
    List<Field> fields = set.fields();
    try (Progress bar = new Progress("convert", set.totalBytes())) {
      long sample = 0;
      long doneBytes = 0;
      for (Shard shard : set.shards()) {
        long step = Math.min(shard.samples(), samplesAtATime());
        try (Arena arena = Arena.ofConfined()) {
          List<MemorySegment> columns =
              fields.stream().map(field -> arena.allocate(step * field.sampleBytes(), 1)).toList();
          for (long first = 0; first < shard.samples(); first += step) {
            long samples = Math.min(step, shard.samples() - first);
            read(session, shard, first, samples, columns);
            for (long i = 0; i < samples; i++, sample++) {
              byte[] record = examples.record(values(columns, i));
              sink.write((int) (sample * files / set.samples()), MemorySegment.ofArray(record));
            }
            bar.onProgress(
                doneBytes + (long) ((double) (first + samples) / shard.samples() * shard.bytes()),
                set.totalBytes());
          }
        }
        doneBytes += shard.bytes();
      }
    }
  }

  private long samplesAtATime() {
    long bytes = set.fields().stream().mapToLong(Field::sampleBytes).sum();
    return Math.max(1, CHUNK_BYTES / Math.max(1, bytes));
  }

  private void read(
      GantrySession session, Shard shard, long first, long samples, List<MemorySegment> columns) {
    for (int i = 0; i < columns.size(); i++) {
      long bytes = set.fields().get(i).sampleBytes();
      if (bytes > 0) {
        Extent extent =
            new Extent(shard.location(), shard.offset(i) + first * bytes, samples * bytes);
        session.copy(new Source.FilePart(extent), columns.get(i));
      }
    }
  }

  private List<MemorySegment> values(List<MemorySegment> columns, long sample) {
    List<MemorySegment> values = new ArrayList<>();
    for (int i = 0; i < columns.size(); i++) {
      long bytes = set.fields().get(i).sampleBytes();
      values.add(columns.get(i).asSlice(sample * bytes, bytes));
    }
    return values;
  }
}
