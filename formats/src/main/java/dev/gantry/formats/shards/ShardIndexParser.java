// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonReader.Kind;
import dev.gantry.formats.internal.json.MemberNames;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.spi.FileBytes;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.LongStream;

/// Parses `shards.json`. It skips unknown members, as the other formats do, so that later writers may add
/// some.
final class ShardIndexParser {
  private static final int SUM_DIGITS = 8;

  private final FileBytes bytes;
  private final boolean withShards;
  private final JsonReader json;
  private final List<Field> fields = new ArrayList<>();
  private final SequencedMap<String, String> metadata = new LinkedHashMap<>();
  private final List<Shard> shards = new ArrayList<>();

  /// The offset of each shard's entry in the index.
  private final List<Long> positions = new ArrayList<>();

  private final Set<String> shardNames = new HashSet<>();
  private long blockBytes;
  private long samples;
  private long samplesPosition;

  /// @param withShards whether to compare what the index says with the sizes of the files
  /// @throws MalformedFileException of kind `index-too-large`
  ShardIndexParser(FileBytes bytes, boolean withShards) {
    this.bytes = bytes;
    this.withShards = withShards;
    if (bytes.length() > ShardSet.MAX_INDEX_BYTES) {
      throw new MalformedFileException(
          bytes.file(),
          0,
          "index-too-large",
          bytes.length() + " bytes, more than " + ShardSet.MAX_INDEX_BYTES);
    }
    this.json = new JsonReader(bytes, 0, bytes.length());
  }

  ShardSet parse() {
    json.require(Kind.OBJECT, "not-an-object", "the index");
    MemberNames members = new MemberNames(json, "the index", 0);
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      switch (members.next()) {
        case "format" -> format();
        case "version" -> version();
        case "samples" -> {
          samples = json.count("samples");
          samplesPosition = json.valueOffset();
        }
        case "block_bytes" -> blockBytes = blockBytes();
        case "fields" -> fields();
        case "metadata" -> metadata();
        case "shards" -> shards();
        default -> unknown();
      }
    }
    json.end();
    members.require(List.of("format", "version", "samples", "block_bytes", "fields", "shards"));
    return checked();
  }

  private ShardSet checked() {
    long sum = 0;
    long total = 0;
    for (int i = 0; i < shards.size(); i++) {
      Shard shard = shards.get(i);
      if (shard.samples() > EpochOrder.MAX_SAMPLES - sum
          || shard.bytes() > Long.MAX_VALUE - total) {
        throw json.malformedAt(
            positions.get(i), "total-overflow", "shards of more than 2⁶² samples or 2⁶³-1 bytes");
      }
      sum += shard.samples();
      total += shard.bytes();
    }
    if (sum != samples) {
      throw json.malformedAt(
          samplesPosition,
          "samples-mismatch",
          samples + " samples, where the shards have " + sum + " together");
    }
    for (int i = 0; i < shards.size(); i++) {
      new ShardRules(bytes.file(), shards.get(i), positions.get(i), fields, blockBytes)
          .check(withShards);
    }
    return new ShardSet(bytes.file(), blockBytes, fields, metadata, shards);
  }

  private String string(String fault, String subject) {
    json.require(Kind.STRING, fault, subject);
    return json.string();
  }

  private void format() {
    String format = string("invalid-format", "the format");
    if (!format.equals(ShardSet.FORMAT)) {
      throw json.malformed("unknown-format", "'" + format + "', not '" + ShardSet.FORMAT + "'");
    }
  }

  private void version() {
    long version = json.count("version");
    if (version != ShardSet.VERSION) {
      throw json.malformed(
          "unknown-version", version + ", where only " + ShardSet.VERSION + " is known");
    }
  }

  private long blockBytes() {
    long size = json.count("block-bytes");
    if (size == 0 || size % ShardSet.PAGE_BYTES != 0 || size > ShardSet.MAX_BLOCK_BYTES) {
      throw json.malformed(
          "invalid-block-bytes",
          size
              + " is not a multiple of "
              + ShardSet.PAGE_BYTES
              + " from there to "
              + ShardSet.MAX_BLOCK_BYTES);
    }
    return size;
  }

  /// Skips an unknown member; its name counts as an entry, since it is kept to refuse a second one.
  private void unknown() {
    json.countEntry();
    json.skip();
  }

  private void metadata() {
    json.require(Kind.OBJECT, "invalid-metadata", "metadata");
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      String key = json.memberName();
      json.countNote();
      if (metadata.containsKey(key)) {
        throw json.malformed("duplicate-note", "note '" + key + "' occurs twice");
      }
      metadata.put(key, string("metadata-not-a-string", "the note '" + key + "' in metadata"));
    }
  }

  private void fields() {
    json.require(Kind.ARRAY, "invalid-fields", "fields");
    long position = json.valueOffset();
    Set<String> names = new HashSet<>();
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      if (fields.size() == ShardSet.MAX_FIELDS) {
        throw json.malformed("too-many-fields", "more than " + ShardSet.MAX_FIELDS + " fields");
      }
      json.countEntry();
      json.require(Kind.OBJECT, "invalid-field", "a field");
      long fieldPosition = json.valueOffset();
      Field field = field(fieldPosition);
      if (!names.add(field.name())) {
        throw json.malformedAt(
            fieldPosition, "duplicate-name", "field '" + field.name() + "' occurs twice");
      }
      fields.add(field);
    }
    if (fields.isEmpty()) {
      throw json.malformedAt(position, "no-fields", "samples without a field");
    }
  }

  private Field field(long position) {
    String name = "";
    DType dtype = DType.U8;
    TensorShape shape = TensorShape.of();
    MemberNames members = new MemberNames(json, "field " + fields.size(), position);
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      switch (members.next()) {
        case "name" -> {
          name = string("invalid-name", "a field's name");
          if (name.isEmpty()) {
            throw json.malformed("empty-name", "a field has the empty name");
          }
        }
        case "dtype" -> dtype = JsonMembers.dtype(json, "field", name);
        case "shape" -> shape = JsonMembers.shape(json, "field", name);
        default -> unknown();
      }
    }
    members.require(List.of("name", "dtype", "shape"));
    return fitting(name, dtype, shape, position);
  }

  private Field fitting(String name, DType dtype, TensorShape shape, long position) {
    String claim = "field '" + name + "', " + dtype + " " + shape + ",";
    if (dtype.bits() % Byte.SIZE != 0) {
      throw json.malformedAt(
          position, "sub-byte-dtype", claim + " has elements that are smaller than a byte");
    }
    OptionalLong elements = shape.elements();
    if (elements.isEmpty() || elements.getAsLong() > Long.MAX_VALUE / (dtype.bits() / Byte.SIZE)) {
      throw json.malformedAt(position, "shape-overflow", claim + " has too many elements to count");
    }
    return new Field(name, dtype, shape);
  }

  private void shards() {
    json.require(Kind.ARRAY, "invalid-shards", "shards");
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      if (shards.size() == ShardSet.MAX_SHARDS) {
        throw json.malformed("too-many-shards", "more than " + ShardSet.MAX_SHARDS + " shards");
      }
      json.countEntry();
      json.require(Kind.OBJECT, "invalid-shard", "a shard");
      positions.add(json.valueOffset());
      shards.add(shard(json.valueOffset()));
    }
  }

  private Shard shard(long position) {
    String name = "";
    long shardSamples = 0;
    long shardBytes = 0;
    long[] offsets = {};
    int[] sums = {};
    MemberNames members = new MemberNames(json, "shard " + shards.size(), position);
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      switch (members.next()) {
        case "file" -> name = shardName();
        case "samples" -> shardSamples = json.count("samples");
        case "bytes" -> shardBytes = json.count("bytes");
        case "offsets" -> offsets = offsets();
        case "crc32c" -> sums = sums();
        default -> unknown();
      }
    }
    members.require(List.of("file", "samples", "bytes", "offsets", "crc32c"));
    return new Shard(bytes.file().sibling(name), shardSamples, shardBytes, offsets, sums);
  }

  private String shardName() {
    String name = string("shard-name-not-a-string", "a shard's file name");
    JsonMembers.checkFileName(json, name, "a shard is '" + name + "'");
    if (!shardNames.add(name)) {
      throw json.malformed("duplicate-shard", "shard '" + name + "' occurs twice");
    }
    return name;
  }

  private long[] offsets() {
    json.require(Kind.ARRAY, "invalid-offsets", "offsets");
    LongStream.Builder offsets = LongStream.builder();
    int count = 0;
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      json.countEntry();
      if (count == ShardSet.MAX_FIELDS) {
        throw json.malformed("too-many-offsets", "more than " + ShardSet.MAX_FIELDS + " offsets");
      }
      count++;
      offsets.add(json.count("offset"));
    }
    return offsets.build().toArray();
  }

  /// Reads the checksums, eight lower-case hexadecimal digits for each block.
  private int[] sums() {
    String text = string("invalid-crc32c", "crc32c");
    if (text.length() % SUM_DIGITS != 0) {
      throw json.malformed("crc32c-length", text.length() + " digits, not " + SUM_DIGITS + " each");
    }
    int[] sums = new int[text.length() / SUM_DIGITS];
    for (int i = 0; i < text.length(); i++) {
      char digit = text.charAt(i);
      if (!HexFormat.isHexDigit(digit) || (digit >= 'A' && digit <= 'F')) {
        throw json.malformed(
            "invalid-crc32c", "'" + digit + "' is not a lower-case hexadecimal digit");
      }
      sums[i / SUM_DIGITS] = sums[i / SUM_DIGITS] << 4 | HexFormat.fromHexDigit(digit);
    }
    return sums;
  }
}
