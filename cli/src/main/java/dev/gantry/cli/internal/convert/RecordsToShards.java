// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.input.RecordFiles;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Writes TFRecord files as raw tensor shards: each record becomes a sample, each feature a
/// field. All records must have the same features, each with the same kind and length; otherwise
/// the conversion fails and nothing is written.
public record RecordsToShards(List<Location> files, RecordFields features, Path output) {
  /// @param shardBytes the most bytes of a shard; null for the default
  /// @param samples the number of samples in a shard; null for as many as fit `shardBytes`
  public static ShardOptions options(@Nullable Long shardBytes, @Nullable Long samples) {
    if (shardBytes != null && samples != null) {
      throw new MisuseException("--shard-bytes and --samples-per-shard cannot be combined");
    }
    // One writer is as fast as the reader, and each further writer would hold another shard in
    // memory.
    ShardOptions options = ShardOptions.defaults().withWriters(1);
    if (samples != null) {
      return options.withSamplesPerShard(samples);
    }
    return shardBytes == null ? options : options.withShardBytes(shardBytes);
  }

  public WrittenFiles run(GantrySession session, ShardOptions options) throws IOException {
    checkOutput(session);
    ExampleParser parser = new ExampleParser(features.specs(session));
    List<Field> fields = parser.fields();
    long start = System.nanoTime();
    try (ShardWriter writer = ShardWriter.create(session, output, fields, options);
        Progress bar = Progress.ofRecords("convert", files);
        Arena arena = Arena.ofConfined()) {
      MemorySegment sample = arena.allocate(parser.batchBytes(1), Long.BYTES);
      for (Location file : files) {
        try (TfRecordReader reader = RecordFiles.open(session, file)) {
          while (reader.next()) {
            RawRecord record =
                new RawRecord(file, reader.number(), reader.offset(), reader.record());
            parser.requireNoOthers(record);
            writer.append(values(parser.parse(List.of(record), sample), fields, sample));
            bar.at(reader);
          }
        }
      }
      return WrittenFiles.of(output, writer.finish(), start);
    }
  }

  /// Returns the values of the only sample in `batch`, by field.
  private static Map<String, MemorySegment> values(
      List<FieldView> views, List<Field> fields, MemorySegment batch) {
    Map<String, MemorySegment> values = new HashMap<>();
    for (int i = 0; i < views.size(); i++) {
      long bytes = fields.get(i).sampleBytes();
      values.put(views.get(i).name(), batch.asSlice(views.get(i).offset(), bytes));
    }
    return values;
  }

  private void checkOutput(GantrySession session) throws IOException {
    if (output.toString().endsWith(WeightsConversion.ONE_FILE)) {
      throw new MisuseException(
          "OUT must be a folder, because TFRecord becomes raw tensor shards (was " + output + ")");
    }
    Input.requireNoWeights(session, output);
    for (Location file : files) {
      Path folder =
          file instanceof Location.Local(Path local, _) ? local.toAbsolutePath().getParent() : null;
      if (folder != null && Files.isDirectory(output) && Files.isSameFile(folder, output)) {
        // OUT must not be IN's folder, because a folder with both formats would be read as shards.
        throw new MisuseException("OUT must not be the folder of IN (was " + output + ")");
      }
    }
  }
}
