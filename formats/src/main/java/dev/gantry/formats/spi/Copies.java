// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.spi.Copy2D;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Collects copies in order. Rows that follow each other at equal distances become one copy. Not
/// thread-safe.
final class Copies {
  private final List<Copy2D> made = new ArrayList<>();
  private @Nullable Copy2D open;

  private Copies() {}

  /// Returns the copies that replace two steps: a copy into intermediate memory, and then copies
  /// out of this memory.
  static List<Copy2D> composed(Copy2D first, List<Copy2D> second) {
    Copies copies = new Copies();
    for (long row = 0; row < first.rows(); row++) {
      long source = first.source() + row * first.sourcePitch();
      long from = first.target() + row * first.targetPitch();
      for (Copy2D out : second) {
        copies.addWithin(source, from, from + first.width(), out);
      }
    }
    return copies.end();
  }

  /// Adds the copies of a row that lies in the memory from `from` to `to`.
  private void addWithin(long source, long from, long to, Copy2D out) {
    long before = from - out.source() - out.width() + 1;
    long row = before <= 0 ? 0 : Math.ceilDiv(before, out.sourcePitch());
    for (; row < out.rows(); row++) {
      long start = out.source() + row * out.sourcePitch();
      if (start >= to) {
        return;
      }
      long kept = Math.max(from, start);
      long bytes = Math.min(to, start + out.width()) - kept;
      add(source + kept - from, out.target() + row * out.targetPitch() + kept - start, bytes);
    }
  }

  private void add(long source, long target, long bytes) {
    Copy2D last = open;
    if (last != null && last.width() == bytes) {
      long sourcePitch = source - last.source() - (last.rows() - 1) * last.sourcePitch();
      long targetPitch = target - last.target() - (last.rows() - 1) * last.targetPitch();
      boolean fits =
          last.rows() == 1
              ? sourcePitch >= bytes && targetPitch >= bytes
              : sourcePitch == last.sourcePitch() && targetPitch == last.targetPitch();
      if (fits) {
        open =
            new Copy2D(
                last.source(), sourcePitch, last.target(), targetPitch, bytes, last.rows() + 1);
        return;
      }
    }
    end();
    open = Copy2D.ofRow(source, target, bytes);
  }

  private List<Copy2D> end() {
    if (open != null) {
      made.add(open);
      open = null;
    }
    return made;
  }
}
