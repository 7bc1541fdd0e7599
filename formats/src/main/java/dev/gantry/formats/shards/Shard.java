// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Location;
import java.nio.file.Path;

/// One file of a [ShardSet]. Immutable.
public final class Shard {
  private final Location location;
  private final long samples;
  private final long bytes;
  private final long[] offsets;
  private final int[] sums;

  /// @param offsets the offset of each field; the array is not copied
  /// @param sums the CRC32C of each block; the array is not copied
  Shard(Location location, long samples, long bytes, long[] offsets, int[] sums) {
    this.location = location;
    this.samples = samples;
    this.bytes = bytes;
    this.offsets = offsets;
    this.sums = sums;
  }

  /// @throws dev.gantry.core.MisuseException if the file is not local: see [#location]
  public Path file() {
    return location.path();
  }

  /// The location of the file.
  public Location location() {
    return location;
  }

  /// How many samples the shard has; 1 or more.
  public long samples() {
    return samples;
  }

  /// The file's size in bytes.
  public long bytes() {
    return bytes;
  }

  /// The offset of a field's first sample, in bytes from the file's start: a multiple of 4096.
  ///
  /// @param field the field's number, in the order of [ShardSet#fields]
  public long offset(int field) {
    return offsets[field];
  }

  /// How many blocks have a checksum.
  public int blocks() {
    return sums.length;
  }

  /// The CRC32C of a block.
  ///
  /// @param block the block's number: the block begins at the file offset `block` · [ShardSet#blockBytes]
  public int crc32c(int block) {
    return sums[block];
  }

  /// How many fields have an offset.
  int offsets() {
    return offsets.length;
  }

  /// Returns the same shard at another path.
  Shard withFile(Path other) {
    return new Shard(Location.of(other), samples, bytes, offsets, sums);
  }

  /// The file's name, without its folder.
  String name() {
    return location.fileName();
  }
}
