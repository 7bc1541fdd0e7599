// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.OrderIdentity;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/// The samples of one or more sets, with some of their fields. A field's values in a run of samples are one piece of a
/// file, and the CPU writes none.
final class ShardCatalogue implements SampleCatalogue {
  private final List<Shard> shards;

  /// The number within the set of each chosen field.
  private final int[] chosen;

  private final List<Field> fields;

  /// The size of one sample's value of each field.
  private final long[] valueBytes;

  private final List<Long> fileSamples;
  private final List<Location> files;

  /// For each file, the set that knows it.
  private final Map<Location, ShardSet> sets = new HashMap<>();

  private final String identity;

  ShardCatalogue(List<ShardSet> all, List<String> names) {
    ShardSet set = all.getFirst();
    for (ShardSet each : all) {
      if (!each.fields().equals(set.fields())) {
        throw new MisuseException(
            "%s has the fields %s, and %s has %s"
                .formatted(set.location(), set.fields(), each.location(), each.fields()));
      }
      for (Shard shard : each.shards()) {
        if (sets.put(shard.location(), each) != null) {
          throw new MisuseException("the shard " + shard.location() + " is given twice");
        }
      }
    }
    shards = all.stream().flatMap(each -> each.shards().stream()).toList();
    chosen = names.stream().mapToInt(name -> number(set, name)).toArray();
    Set<String> distinct = new HashSet<>();
    for (String name : names) {
      if (!distinct.add(name)) {
        throw new MisuseException("field '" + name + "' is chosen twice");
      }
    }
    fields = names.stream().map(name -> set.fields().get(number(set, name))).toList();
    valueBytes = fields.stream().mapToLong(Field::sampleBytes).toArray();
    fileSamples = shards.stream().map(Shard::samples).toList();
    files = shards.stream().map(Shard::location).toList();
    identity = identity(set.fields(), shards);
  }

  private static int number(ShardSet set, String name) {
    List<String> names = set.fields().stream().map(Field::name).toList();
    int number = names.indexOf(name);
    if (number < 0) {
      throw new MisuseException(
          set.location() + " has no field '" + name + "'; its fields are " + names);
    }
    return number;
  }

  /// A digest of all that `shards.json` says of the samples, checksums included.
  private static String identity(List<Field> fields, List<Shard> shards) {
    MessageDigest digest = OrderIdentity.sha256();
    for (Field field : fields) {
      text(digest, field.name());
      text(digest, field.dtype() + " " + field.shape());
    }
    for (Shard shard : shards) {
      text(digest, shard.name());
      ByteBuffer numbers = ByteBuffer.allocate(2 * Long.BYTES + shard.blocks() * Integer.BYTES);
      numbers.putLong(shard.samples()).putLong(shard.bytes());
      for (int block = 0; block < shard.blocks(); block++) {
        numbers.putInt(shard.crc32c(block));
      }
      digest.update(numbers.flip());
    }
    return "gantry-shards-" + HexFormat.of().formatHex(digest.digest());
  }

  private static void text(MessageDigest digest, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).flip());
    digest.update(bytes);
  }

  @Override
  public List<Field> fields() {
    return fields;
  }

  @Override
  public List<Long> fileSamples() {
    return fileSamples;
  }

  @Override
  public String identity() {
    return identity;
  }

  /// All values are aligned, since fields begin on pages and a value's size is a multiple of its dtype's
  /// size.
  @Override
  public FieldSource source(int field) {
    return new FieldSource.InFiles(valueBytes[field], true);
  }

  @Override
  public void pieces(int field, SampleRun run, PieceSink sink) {
    Shard shard = shards.get(run.file());
    Objects.checkFromIndexSize(run.first(), run.count(), shard.samples());
    long offset = shard.offset(chosen[field]) + run.first() * valueBytes[field];
    sink.piece(files.get(run.file()), offset, run.count());
  }

  @Override
  public void opened(Location file, Object identity) {
    ShardSet set = sets.get(file);
    if (set != null) {
      set.files().check(file, identity);
    }
  }

  @Override
  public void write(int field, SampleRun run, MemorySegment target, long offset) {
    throw new IllegalStateException("field '" + fields.get(field).name() + "' is in files");
  }
}
