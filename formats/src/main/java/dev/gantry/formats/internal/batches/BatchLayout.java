// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.BatchBounds;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import java.util.List;

/// The three consecutive areas of a slot: bytes as they were read from the files, rows that the
/// device packed, and fields that the CPU wrote. All batches of a dataset have the same areas.
///
/// @param rawBytes the size of the first area, a multiple of [PlanLimits#BLOCK_BYTES]
/// @param packedBytes the size of the second area
/// @param hostBytes the size of the third area
record BatchLayout(long rawBytes, long packedBytes, long hostBytes) {
  /// Each field of the second and the third area begins at a multiple of this many bytes.
  static final int ALIGNMENT = ExtentRequest.MAX_ALIGNMENT_BYTES;

  /// @param bounds hold for every batch of every epoch
  /// @throws MisuseException if a slot would be larger than any memory
  static BatchLayout of(SampleCatalogue store, BatchBounds bounds, PlanLimits limits) {
    try {
      BatchLayout layout = exactly(store, bounds, limits);
      long _ = layout.slotBytes();
      return layout;
    } catch (ArithmeticException _) {
      throw new MisuseException(
          "no memory holds a batch of " + bounds.samples() + " samples; make it smaller");
    }
  }

  private static BatchLayout exactly(SampleCatalogue store, BatchBounds bounds, PlanLimits limits) {
    ReadBound reads = new ReadBound(store.fileSamples(), bounds, limits);
    List<Field> fields = store.fields();
    long raw = 0;
    long mostSpacing = 0;
    long dense = 0;
    long packed = 0;
    long made = 0;
    for (int i = 0; i < fields.size(); i++) {
      long rowBytes = fields.get(i).sampleBytes();
      long bytes = align(Math.multiplyExact(rowBytes, bounds.samples()), ALIGNMENT);
      if (bytes > 0) {
        switch (store.source(i)) {
          case FieldSource.HostWritten() -> made = Math.addExact(made, bytes);
          case FieldSource.InFiles(long spacing, boolean aligned) -> {
            dense = Math.addExact(dense, bytes);
            raw = ReadBound.sum(raw, reads.bytes(rowBytes, spacing));
            mostSpacing = Math.max(mostSpacing, spacing);
            if (bounds.runs() > 1 || spacing != rowBytes || !aligned) {
              packed = Math.addExact(packed, bytes);
            }
          }
        }
      }
    }
    // The distance between samples is at most the widest spacing of any field.
    long together = reads.bytes(store.sampleSpan(), mostSpacing);
    // Gathered fields lie end to end in the first two areas.
    long first = Math.max(Math.min(raw, together), dense - packed);
    return new BatchLayout(align(first, PlanLimits.BLOCK_BYTES), packed, made);
  }

  /// The offset of the second area.
  long packedOffset() {
    return rawBytes;
  }

  /// The offset of the third area.
  long hostOffset() {
    return rawBytes + packedBytes;
  }

  /// The size of a slot, a multiple of [PlanLimits#BLOCK_BYTES].
  long slotBytes() {
    long bytes = Math.addExact(Math.addExact(rawBytes, packedBytes), hostBytes);
    return Math.max(PlanLimits.BLOCK_BYTES, align(bytes, PlanLimits.BLOCK_BYTES));
  }

  static long align(long bytes, int alignment) {
    return Math.addExact(bytes, alignment - 1) & -alignment;
  }
}
