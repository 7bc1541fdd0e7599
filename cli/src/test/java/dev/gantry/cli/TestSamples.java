// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.translate.TranslateException;
import dev.gantry.cli.internal.digest.TensorDigests;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// Writes small files of samples, and runs commands on them.
public final class TestSamples {
  private TestSamples() {}

  /// @param values the values of each field, for all samples end to end
  public static void writeShards(
      Path folder, List<Field> fields, Map<String, byte[]> values, int samples, int perShard) {
    try (GantrySession session = GantrySession.open();
        ShardWriter writer =
            ShardWriter.create(
                session,
                folder,
                fields,
                ShardOptions.defaults().withSamplesPerShard(perShard).withBlockBytes(4096))) {
      for (int i = 0; i < samples; i++) {
        Map<String, MemorySegment> sample = new HashMap<>();
        for (Field field : fields) {
          int bytes = (int) field.sampleBytes();
          sample.put(
              field.name(),
              MemorySegment.ofArray(
                  Arrays.copyOfRange(values.get(field.name()), i * bytes, (i + 1) * bytes)));
        }
        writer.append(sample);
      }
      assertThat(writer.finish().samples()).isEqualTo(samples);
    }
  }

  public static Path writeRecords(Path file, Compression compression, ExampleBuilder... examples) {
    List<byte[]> records = Stream.of(examples).map(ExampleBuilder::toBytes).toList();
    return writeRecords(file, compression, records);
  }

  public static Path writeRecords(Path file, Compression compression, List<byte[]> records) {
    try (GantrySession session = GantrySession.open();
        TfRecordWriter writer = TfRecordWriter.create(session, file, compression)) {
      records.forEach(writer::write);
      writer.commit();
    }
    return file;
  }

  public static String sha256(byte[] bytes) {
    return HexFormat.of().formatHex(TensorDigests.sha256().digest(bytes));
  }

  /// Returns the SHA-256 of each array of an epoch, in the order of the batches. In each batch,
  /// data come before labels.
  static List<String> epoch(Dataset dataset, NDManager manager)
      throws IOException, TranslateException {
    List<String> all = new ArrayList<>();
    for (Batch batch : dataset.getData(manager)) {
      try (batch) {
        for (NDArray array :
            Stream.concat(batch.getData().stream(), batch.getLabels().stream()).toList()) {
          all.add(sha256(array.toByteArray()));
        }
      }
    }
    return all;
  }

  /// Runs a command that must succeed and print nothing on standard error.
  public static CommandLineRun run(Object... arguments) {
    CommandLineRun run = CommandLineRun.of(arguments);
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.err()).isEmpty();
    return run;
  }

  /// Runs a command that must fail with one line on standard error and print nothing else.
  public static CommandLineRun fail(int exitCode, Object... arguments) {
    CommandLineRun run = CommandLineRun.of(arguments);
    assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
    assertThat(run.out()).isEmpty();
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.err()).startsWith("gantry: ");
    return run;
  }

  public static Map<?, ?> json(CommandLineRun run) {
    return (Map<?, ?>) run.json();
  }

  /// Returns the dtype, shape and sha256 of each field, as `digest --json` prints them.
  public static Map<?, ?> fieldsOf(Path shards) {
    return (Map<?, ?>) json(run("digest", "--json", "--device", "host", shards)).get("fields");
  }

  /// Returns the digests of a file's records.
  public static List<?> recordsOf(Path file) {
    return (List<?>) json(run("digest", "--json", file)).get("records");
  }

  /// Returns the names in a folder, sorted.
  public static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return new ArrayList<>(files.map(file -> file.getFileName().toString()).sorted().toList());
    }
  }
}
