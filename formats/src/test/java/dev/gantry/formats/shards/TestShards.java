// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/// Samples whose bytes a seed determines, and the check that a set on the disk holds them.
final class TestShards {
  static final int PAGE = 4096;

  /// The fields' values have a page and some bytes, one number, or no byte.
  static final List<Field> FIELDS =
      List.of(
          new Field("image", DType.U8, TensorShape.of(3, 500)),
          new Field("empty", DType.F32, TensorShape.of(0)),
          new Field("label", DType.I64, TensorShape.of()));

  private TestShards() {}

  /// Returns the bytes of all samples by field.
  static Map<String, byte[]> values(List<Field> fields, long seed, int samples) {
    Map<String, byte[]> values = new LinkedHashMap<>();
    for (Field field : fields) {
      int length = Math.toIntExact(samples * field.sampleBytes());
      values.put(field.name(), TestFiles.bytes(seed + values.size(), length));
    }
    return values;
  }

  /// Returns some of the samples as sources for an append.
  static Map<String, Source> sources(
      List<Field> fields, Map<String, byte[]> values, int first, int count) {
    Map<String, Source> sources = new LinkedHashMap<>();
    segments(fields, values, first, count)
        .forEach((name, segment) -> sources.put(name, new Memory.OnHost(segment)));
    return sources;
  }

  static Map<String, MemorySegment> segments(
      List<Field> fields, Map<String, byte[]> values, int first, int count) {
    Map<String, MemorySegment> segments = new LinkedHashMap<>();
    for (Field field : fields) {
      long bytes = field.sampleBytes();
      segments.put(
          field.name(),
          MemorySegment.ofArray(values.get(field.name())).asSlice(first * bytes, count * bytes));
    }
    return segments;
  }

  /// Appends samples one by one.
  static void append(ShardWriter writer, Map<String, byte[]> values, int samples) {
    for (int i = 0; i < samples; i++) {
      writer.append(segments(FIELDS, values, i, 1));
    }
  }

  /// Returns options for small requests by one writer, which give the same calls each time.
  static ShardOptions options() {
    return ShardOptions.defaults()
        .withSamplesPerShard(3)
        .withBlockBytes(PAGE)
        .withWriters(1)
        .withMetadata(Map.of("note", "a test"))
        .withWrite(WriteOptions.defaults().withRequestBytes(PAGE).withThreads(1));
  }

  /// Requires that the set holds exactly these samples in the format's layout.
  static void requireWhole(
      Path folder, List<Field> fields, Map<String, byte[]> values, long samples, String where) {
    ShardSet set = ShardSet.open(folder);
    assertThat(set.fields()).as(where).isEqualTo(fields);
    assertThat(set.samples()).as(where).isEqualTo(samples);
    long first = 0;
    for (Shard shard : set.shards()) {
      requireShard(set, shard, values, first, where);
      first += shard.samples();
    }
    try (GantrySession session = GantrySession.open()) {
      set.verify(session);
    }
  }

  private static void requireShard(
      ShardSet set, Shard shard, Map<String, byte[]> values, long first, String where) {
    byte[] bytes = read(shard.file());
    assertThat(shard.bytes()).as(where).isEqualTo(bytes.length);
    int end = 0;
    for (int i = 0; i < set.fields().size(); i++) {
      Field field = set.fields().get(i);
      int offset = Math.toIntExact(shard.offset(i));
      int length = Math.toIntExact(shard.samples() * field.sampleBytes());
      assertThat(offset).as(where).isEqualTo(Math.ceilDiv(end, PAGE) * PAGE);
      assertThat(Arrays.copyOfRange(bytes, end, offset))
          .as(where)
          .containsOnly(zeros(offset - end));
      int from = Math.toIntExact(first * field.sampleBytes());
      assertThat(Arrays.copyOfRange(bytes, offset, offset + length))
          .as("%s: field %s from sample %d on", where, field.name(), first)
          .isEqualTo(Arrays.copyOfRange(values.get(field.name()), from, from + length));
      end = offset + length;
    }
    assertThat(bytes).as(where).hasSize(end);
    int block = Math.toIntExact(set.blockBytes());
    assertThat(shard.blocks()).as(where).isEqualTo(Math.ceilDiv(end, block));
    for (int i = 0; i < shard.blocks(); i++) {
      CRC32C sum = new CRC32C();
      sum.update(bytes, i * block, Math.min(block, end - i * block));
      assertThat(shard.crc32c(i)).as(where).isEqualTo((int) sum.getValue());
    }
  }

  /// Returns an argument for `containsOnly`, which does not allow a zero for an empty array.
  private static byte[] zeros(int length) {
    return length == 0 ? new byte[0] : new byte[1];
  }

  static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns the set of a folder, if the folder has an index, which must be correct then.
  static Optional<ShardSet> present(Path folder) {
    if (!Files.exists(folder)) {
      return Optional.empty();
    }
    try {
      return Optional.of(ShardSet.open(folder));
    } catch (MalformedFileException e) {
      assertThat(e.kind()).as(e.getMessage()).isEqualTo("no-shards");
      return Optional.empty();
    }
  }

  static List<String> names(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
