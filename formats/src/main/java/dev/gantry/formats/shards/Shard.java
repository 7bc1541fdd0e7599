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

  /// @param offsets of each field; not copied
  /// @param sums of each block; not copied
  Shard(Location location, long samples, long bytes, long[] offsets, int[] sums) {
    this.location = location;
    this.samples = samples;
    this.bytes = bytes;
    this.offsets = offsets;
    this.sums = sums;
  }

  /// @throws dev.gantry.core.MisuseException if another store holds it: see [#location]
  public Path file() {
    return location.path();
  }

  /// The location of the file.
  public Location location() {
    return location;
  }

  /// How many there are in it; 1 or more.
  public long samples() {
    return samples;
  }

  /// The file's size.
  public long bytes() {
    return bytes;
  }

  /// The offset of a field's first sample, in bytes from the file's start: a multiple of 4096.
  ///
  /// @param field its number, in the order of [ShardSet#fields]
  public long offset(int field) {
    return offsets[field];
  }

  /// How many blocks have a checksum.
  public int blocks() {
    return sums.length;
  }

  /// The CRC32C of a block.
  ///
  /// @param block its number: its first byte is number `block` · [ShardSet#blockBytes] of the file
  public int crc32c(int block) {
    return sums[block];
  }

  /// How many fields have an offset.
  int offsets() {
    return offsets.length;
  }

  /// The same samples in another place.
  Shard withFile(Path other) {
    return new Shard(Location.of(other), samples, bytes, offsets, sums);
  }

  /// The file's name, without its folder.
  String name() {
    return location.fileName();
  }
}
