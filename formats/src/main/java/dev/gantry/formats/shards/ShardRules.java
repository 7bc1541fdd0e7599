// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.Field;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;

/// Checks a shard's entry against the rest of `shards.json` and against the file.
///
/// @param shard as `shards.json` describes it; only its name has been checked
/// @param position the entry's offset in `shards.json`, in bytes
record ShardRules(Location index, Shard shard, long position, List<Field> fields, long blockBytes) {
  /// @param withFile whether to check the file, too
  void check(boolean withFile) {
    checkLayout();
    long blocks = Math.ceilDiv(shard.bytes(), blockBytes);
    if (shard.blocks() != blocks) {
      throw malformed(
          "checksum-count-mismatch", shard.blocks() + " checksums for " + blocks + " blocks");
    }
    // A remote file is checked when it is first read, since a request for each shard would take
    // long.
    if (withFile && shard.location() instanceof Location.Local(Path file, _)) {
      checkFile(file);
    }
  }

  private void checkLayout() {
    if (shard.samples() == 0) {
      throw malformed("empty-shard", "the shard has no samples");
    }
    if (shard.offsets() != fields.size()) {
      throw malformed(
          "offset-count-mismatch", shard.offsets() + " offsets for " + fields.size() + " fields");
    }
    long end = 0;
    for (int i = 0; i < fields.size(); i++) {
      end = checkField(fields.get(i), shard.offset(i), end);
    }
    if (end != shard.bytes()) {
      throw malformed(
          "bytes-after-end",
          "the shard has " + shard.bytes() + " bytes, but its last field ends at byte " + end);
    }
  }

  /// @param previousEnd the end of the field before it
  /// @return where the field ends
  private long checkField(Field field, long offset, long previousEnd) {
    String subject = "field '" + field.name() + "' at " + offset;
    if (offset % ShardSet.PAGE_BYTES != 0) {
      throw malformed(
          "offset-not-on-page", subject + " must begin at a multiple of " + ShardSet.PAGE_BYTES);
    }
    if (offset < previousEnd) {
      throw malformed(
          "fields-overlap", subject + " begins before the previous field ends, at " + previousEnd);
    }
    long sampleBytes = field.sampleBytes();
    if (sampleBytes > 0 && shard.samples() > Long.MAX_VALUE / sampleBytes) {
      throw malformed(
          "samples-overflow",
          shard.samples() + " samples of " + sampleBytes + " bytes each are too many to count");
    }
    long length = sampleBytes * shard.samples();
    if (offset > shard.bytes() || length > shard.bytes() - offset) {
      throw malformed(
          "field-past-end",
          subject + " has " + length + " bytes, but the shard has " + shard.bytes());
    }
    return offset + length;
  }

  private void checkFile(Path file) {
    BasicFileAttributes attributes;
    try {
      attributes = Files.readAttributes(file, BasicFileAttributes.class);
    } catch (NoSuchFileException _) {
      throw malformed("missing-shard", "the shard's file is missing");
    } catch (IOException e) {
      throw FileErrors.of("stat", file.toString(), e);
    }
    if (!attributes.isRegularFile()) {
      throw new MalformedFileException(
          file, 0, "not-a-regular-file", "a shard must be a regular file");
    }
    long size = attributes.size();
    if (size < shard.bytes()) {
      throw new MalformedFileException(
          file,
          size,
          "truncated-shard",
          "the file ends here, but " + index.fileName() + " says " + shard.bytes() + " bytes");
    }
    if (size > shard.bytes()) {
      throw new MalformedFileException(
          file,
          shard.bytes(),
          "wrong-size",
          size + " bytes, where " + index.fileName() + " has " + shard.bytes());
    }
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(
        index, position, kind, "shard '" + shard.name() + "': " + detail);
  }
}
