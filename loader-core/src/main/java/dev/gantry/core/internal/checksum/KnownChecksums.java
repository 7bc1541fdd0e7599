// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// Compares ranges of files with the checksums that they should have. The class sums the bytes of
/// transfers while they are in the CPU's caches, so no byte is read only for the comparison.
///
/// Ranges may overlap, and their bytes may be added in pieces of any size and order, from any
/// thread. A range is not compared if some of its bytes are never added, as when only a part of a
/// tensor was loaded, or cuFile moved the bytes past the CPU. Thread-safe.
public final class KnownChecksums {
  /// The number of bytes to read and sum at a time. It is small enough for the bytes to be in the
  /// processor's cache when they are summed.
  public static final long STEP_BYTES = 512 << 10;

  /// @param subject the name of the range's content in messages, such as `tensor 'x'`
  /// @param crc32c the checksum that the range's bytes should have
  public record Known(Extent extent, String subject, int crc32c) {}

  private record Piece(long offset, long end, int sum) {}

  /// A range, and the checksums of its pieces that have been added.
  private static final class Range {
    final Known known;
    private final List<Piece> pieces = new ArrayList<>();
    private boolean compared;

    Range(Known known) {
      this.known = known;
    }

    synchronized void add(Piece piece) {
      if (!compared) {
        pieces.add(piece);
      }
    }

    /// Compares the range if all its bytes have been added. Returns whether the range was
    /// compared, now or before.
    synchronized boolean compare() {
      if (compared) {
        return true;
      }
      pieces.sort(Comparator.comparingLong(Piece::offset));
      long at = known.extent().offset();
      int sum = Crc32c.OF_NOTHING;
      for (Piece piece : pieces) {
        // A piece that was read twice is skipped.
        if (piece.offset() == at) {
          sum = Crc32c.combine(sum, piece.sum(), piece.end() - at);
          at = piece.end();
        }
      }
      if (at < known.extent().end()) {
        return false;
      }
      if (sum != known.crc32c()) {
        throw mismatch(known, sum);
      }
      compared = true;
      pieces.clear();
      return true;
    }
  }

  /// The ranges of each file, sorted by offset.
  private final Map<Location, List<Range>> ranges = new LinkedHashMap<>();

  private final long longest;

  public KnownChecksums(List<Known> all) {
    all.stream()
        .sorted(Comparator.comparingLong(known -> known.extent().offset()))
        .forEach(known ->
            ranges
                .computeIfAbsent(known.extent().file(), _ -> new ArrayList<>())
                .add(new Range(known)));
    longest = all.stream().mapToLong(known -> known.extent().length()).max().orElse(0);
  }

  /// Sums bytes that a transfer has read, for the ranges that they belong to.
  ///
  /// @param offset where the bytes begin in the file
  public void add(Location file, long offset, MemorySegment bytes) {
    List<Range> ofFile = ranges.getOrDefault(file, List.of());
    long end = offset + bytes.byteSize();
    // A range that begins even earlier ends before these bytes begin, since no range is longer
    // than `longest`.
    for (int i = firstFrom(ofFile, offset - longest); i < ofFile.size(); i++) {
      Range range = ofFile.get(i);
      Extent extent = range.known.extent();
      if (extent.offset() >= end) {
        break;
      }
      long from = Math.max(offset, extent.offset());
      long to = Math.min(end, extent.end());
      if (from < to) {
        range.add(new Piece(from, to, Crc32c.of(bytes.asSlice(from - offset, to - from))));
      }
    }
  }

  private static int firstFrom(List<Range> ofFile, long offset) {
    int low = 0;
    int high = ofFile.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (ofFile.get(middle).known.extent().offset() < offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /// Compares the ranges whose bytes have all been added.
  ///
  /// @return the ranges that lack bytes
  /// @throws MalformedFileException of kind `checksum-mismatch` for the first range that differs
  public List<Known> compare() {
    List<Known> lacking = new ArrayList<>();
    ranges
        .values()
        .forEach(ofFile ->
            ofFile.forEach(range -> {
              if (!range.compare()) {
                lacking.add(range.known);
              }
            }));
    return lacking;
  }

  private static MalformedFileException mismatch(Known known, int found) {
    return new MalformedFileException(
        known.extent().file(),
        known.extent().offset(),
        "checksum-mismatch",
        String.format(
            Locale.ROOT,
            "%s has CRC32C %08x, and its checksum says %08x",
            known.subject(),
            found,
            known.crc32c()));
  }
}
