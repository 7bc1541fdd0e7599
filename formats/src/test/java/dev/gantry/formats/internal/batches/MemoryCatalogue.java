// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.Location;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.Orders;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/// Samples of random bytes in files that are arrays.
final class MemoryCatalogue implements SampleCatalogue {
  enum Kind {
    /// The values of each field are adjacent, and begin at a block.
    DENSE,
    /// The values of each sample are adjacent, and samples have a fixed pitch.
    EVENLY_FRAMED,
    /// The values of each sample are adjacent, with random bytes between samples.
    FRAMED,
    /// The files are framed, but the CPU writes every second field.
    LABELLED
  }

  private final List<Field> fields;
  private final List<Long> shardSamples;
  private final Kind kind;
  private final Map<Path, byte[]> files = new LinkedHashMap<>();

  /// The offsets of values by field, shard and sample.
  private final List<List<long[]>> offsets = new ArrayList<>();

  private final List<List<byte[][]>> values = new ArrayList<>();
  private boolean closed;

  private MemoryCatalogue(List<Field> fields, List<Long> shardSamples, Kind kind) {
    this.fields = fields;
    this.shardSamples = shardSamples;
    this.kind = kind;
  }

  static MemoryCatalogue of(List<Field> fields, List<Long> shardSamples, Kind kind, long seed) {
    MemoryCatalogue store = new MemoryCatalogue(fields, shardSamples, kind);
    Random random = new Random(seed);
    fields.forEach(_ -> {
      store.offsets.add(new ArrayList<>());
      store.values.add(new ArrayList<>());
    });
    for (int shard = 0; shard < shardSamples.size(); shard++) {
      store.addShard(shard, random);
    }
    return store;
  }

  private void addShard(int shard, Random random) {
    int samples = Math.toIntExact(shardSamples.get(shard));
    for (int field = 0; field < fields.size(); field++) {
      byte[][] ofShard = new byte[samples][(int) fields.get(field).sampleBytes()];
      for (byte[] value : ofShard) {
        random.nextBytes(value);
      }
      values.get(field).add(ofShard);
      offsets.get(field).add(new long[samples]);
    }
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    int frame = random.nextInt(64);
    if (kind == Kind.DENSE) {
      for (int field = 0; field < fields.size(); field++) {
        file.writeBytes(new byte[-file.size() & 4095]);
        for (int sample = 0; sample < samples; sample++) {
          append(field, shard, sample, file);
        }
      }
    } else {
      file.writeBytes(new byte[frame]);
      for (int sample = 0; sample < samples; sample++) {
        for (int field = 0; field < fields.size(); field++) {
          if (!isWritten(field)) {
            append(field, shard, sample, file);
          }
        }
        boolean even = kind == Kind.EVENLY_FRAMED;
        int between = even ? frame : random.nextInt(random.nextInt(10) == 0 ? 50_000 : 50);
        file.writeBytes(new byte[between]);
      }
    }
    files.put(path(shard), file.toByteArray());
  }

  private void append(int field, int shard, int sample, ByteArrayOutputStream file) {
    offsets.get(field).get(shard)[sample] = file.size();
    file.writeBytes(values.get(field).get(shard)[sample]);
  }

  private static Path path(int shard) {
    return Path.of("shard-" + shard);
  }

  byte[] file(Path path) {
    byte[] file = files.get(path);
    if (file == null) {
      throw new AssertionError("no file " + path);
    }
    return file;
  }

  byte[] values(int field, List<Orders.Sample> samples) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    samples.forEach(
        sample -> bytes.writeBytes(values.get(field).get(sample.shard())[(int) sample.number()]));
    return bytes.toByteArray();
  }

  boolean isClosed() {
    return closed;
  }

  private boolean isWritten(int field) {
    return kind == Kind.LABELLED && field % 2 == 1;
  }

  @Override
  public List<Field> fields() {
    return fields;
  }

  @Override
  public List<Long> fileSamples() {
    return shardSamples;
  }

  @Override
  public String identity() {
    return "memory " + files.keySet();
  }

  @Override
  public FieldSource source(int field) {
    if (isWritten(field)) {
      return new FieldSource.HostWritten();
    }
    long rowBytes = fields.get(field).sampleBytes();
    if (kind == Kind.DENSE) {
      return new FieldSource.InFiles(rowBytes, true);
    }
    long spacing = rowBytes;
    for (long[] ofShard : offsets.get(field)) {
      for (int i = 1; i < ofShard.length; i++) {
        spacing = Math.max(spacing, ofShard[i] - ofShard[i - 1]);
      }
    }
    return new FieldSource.InFiles(spacing, false);
  }

  /// Returns the span if the number of fields is even; other catalogues do not know it.
  @Override
  public long sampleSpan() {
    if (kind == Kind.DENSE || fields.size() % 2 == 1) {
      return Long.MAX_VALUE;
    }
    long span = 0;
    for (int field = 0; field < fields.size(); field++) {
      span += isWritten(field) ? 0 : fields.get(field).sampleBytes();
    }
    return span;
  }

  @Override
  public void pieces(int field, SampleRun run, PieceSink sink) {
    check(field, run);
    Location file = Location.of(path(run.file()));
    long[] ofShard = offsets.get(field).get(run.file());
    int first = (int) run.first();
    if (kind == Kind.DENSE) {
      sink.piece(file, ofShard[first], run.count());
      return;
    }
    for (int i = 0; i < run.count(); i++) {
      sink.piece(file, ofShard[first + i], 1);
    }
  }

  @Override
  public void write(int field, SampleRun run, MemorySegment target, long offset) {
    check(field, run);
    long at = offset;
    for (int i = 0; i < run.count(); i++) {
      byte[] value = values.get(field).get(run.file())[(int) run.first() + i];
      MemorySegment.copy(value, 0, target, ValueLayout.JAVA_BYTE, at, value.length);
      at += value.length;
    }
  }

  private void check(int field, SampleRun run) {
    if (fields.get(field).sampleBytes() == 0
        || run.count() < 1
        || run.first() < 0
        || run.first() + run.count() > shardSamples.get(run.file())) {
      throw new AssertionError("not to be asked: field " + field + ", " + run);
    }
  }

  @Override
  public void close() {
    closed = true;
  }
}
