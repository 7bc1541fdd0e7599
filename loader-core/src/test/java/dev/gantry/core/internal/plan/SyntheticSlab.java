// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.plan.ReadPlan.Relocation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// A slab that stores the origin of its bytes instead of the bytes. Therefore it can have
/// terabytes, and distinguishes any two bytes of all files, even bytes with equal values.
final class SyntheticSlab {
  /// The bytes of `file` from `fileOffset` on.
  private record Origin(Location file, long fileOffset, long length) {}

  private final TreeMap<Long, Origin> origins = new TreeMap<>();

  /// Carries out all reads, then all relocations, as a transfer does. Each file ends at its last
  /// wanted byte.
  static List<SyntheticSlab> carryOut(ReadPlan plan) {
    List<SyntheticSlab> slabs = new ArrayList<>();
    plan.slabSizes().forEach(_ -> slabs.add(new SyntheticSlab()));
    for (Read read : plan.reads()) {
      slabs
          .get(read.slab())
          .origins
          .put(read.slabOffset(), new Origin(read.file(), read.fileOffset(), read.required()));
    }
    for (Relocation move : plan.relocations()) {
      List<Origin> copied = slabs.get(move.fromSlab()).origins(move.fromOffset(), move.length());
      long to = move.toOffset();
      for (Origin origin : copied) {
        slabs.get(move.toSlab()).origins.put(to, origin);
        to += origin.length();
      }
    }
    return slabs;
  }

  /// Checks for each byte of the extent that it lies at its place behind `offset`.
  void assertHolds(Extent extent, long offset) {
    long at = extent.offset();
    for (Origin origin : origins(offset, extent.length())) {
      assertThat(origin.file()).isEqualTo(extent.file());
      assertThat(origin.fileOffset()).isEqualTo(at);
      at += origin.length();
    }
    assertThat(at).isEqualTo(extent.end());
  }

  /// Returns the origins of `length` bytes from `offset` on, in order; fails at bytes that no read
  /// has filled.
  private List<Origin> origins(long offset, long length) {
    List<Origin> found = new ArrayList<>();
    long at = offset;
    while (at < offset + length) {
      Map.Entry<Long, Origin> entry = origins.floorEntry(at);
      assertThat(entry).as("nothing was read to offset %s", at).isNotNull();
      long skipped = at - entry.getKey();
      Origin origin = entry.getValue();
      long part = Math.min(origin.length() - skipped, offset + length - at);
      assertThat(part).as("nothing was read to offset %s", at).isPositive();
      found.add(new Origin(origin.file(), origin.fileOffset() + skipped, part));
      at += part;
    }
    return found;
  }
}
