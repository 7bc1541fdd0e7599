// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.Field;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/// Fills slots that are arrays.
final class SlotSimulation {
  private SlotSimulation() {}

  /// Carries out the reads, the host writes in any order, and then the copies.
  static byte[] fill(
      BatchPlan<BatchView> plan, MemoryCatalogue store, long slotBytes, long mostMadeBytes) {
    byte[] slot = new byte[Math.toIntExact(slotBytes)];
    // The bytes of the slot that are written already, because none may be written twice.
    boolean[] written = new boolean[slot.length];
    for (Read read : plan.reads()) {
      byte[] file = store.file(read.file().path());
      int present = (int) Math.min(read.length(), file.length - read.fileOffset());
      assertThat(present).isGreaterThanOrEqualTo((int) read.required());
      mark(written, read.slabOffset(), read.length());
      System.arraycopy(file, (int) read.fileOffset(), slot, (int) read.slabOffset(), present);
    }
    make(plan.hostWrites(), slot, written, mostMadeBytes);
    for (Copy2D copy : plan.copies()) {
      for (long row = 0; row < copy.rows(); row++) {
        long to = copy.target() + row * copy.targetPitch();
        mark(written, to, copy.width());
        int from = (int) (copy.source() + row * copy.sourcePitch());
        System.arraycopy(slot, from, slot, (int) to, (int) copy.width());
      }
    }
    return slot;
  }

  /// Carries out the gathers instead of reads and copies.
  static byte[] gather(
      BatchPlan<BatchView> plan, MemoryCatalogue store, long slotBytes, long mostMadeBytes) {
    byte[] slot = new byte[Math.toIntExact(slotBytes)];
    boolean[] written = new boolean[slot.length];
    make(plan.hostWrites(), slot, written, mostMadeBytes);
    assertThat(plan.hostCopies()).isEmpty();
    Gathers gathers = plan.gathers();
    for (int i = 0; i < gathers.count(); i++) {
      assertThat(gathers.length(i)).isPositive();
      assertThat(gathers.end(gathers.file(i)))
          .isGreaterThanOrEqualTo(gathers.offset(i) + gathers.length(i));
      mark(written, gathers.slotOffset(i), gathers.length(i));
      System.arraycopy(
          store.file(gathers.files().get(gathers.file(i)).path()),
          (int) gathers.offset(i),
          slot,
          (int) gathers.slotOffset(i),
          (int) gathers.length(i));
    }
    return slot;
  }

  private static void make(HostWrites made, byte[] slot, boolean[] written, long mostMadeBytes) {
    assertThat(made.bytes()).isLessThanOrEqualTo(mostMadeBytes);
    if (made.bytes() == 0) {
      assertThat(made.writers()).isEmpty();
      return;
    }
    mark(written, made.slotOffset(), made.bytes());
    MemorySegment target = MemorySegment.ofArray(slot).asSlice(made.slotOffset(), made.bytes());
    List<HostWrites.HostWriter> writers = new ArrayList<>(made.writers());
    Collections.reverse(writers);
    writers.forEach(maker -> maker.write(target));
  }

  private static void mark(boolean[] written, long offset, long length) {
    for (long i = offset; i < offset + length; i++) {
      if (written[(int) i]) {
        throw new AssertionError("written twice: " + i);
      }
      written[(int) i] = true;
    }
  }

  /// Returns the values of a view in C order.
  static byte[] values(byte[] slot, FieldView view, Field field) {
    int elementBytes = field.dtype().alignmentBytes();
    assertThat(view.name()).isEqualTo(field.name());
    assertThat(view.dtype()).isEqualTo(field.dtype());
    assertThat(view.offset() % elementBytes).isZero();
    assertThat(view.shape().rank()).isEqualTo(field.shape().rank() + 1);
    assertThat(view.strides()).hasSize(view.shape().rank());
    for (int axis = 0; axis < field.shape().rank(); axis++) {
      assertThat(view.shape().dimension(axis + 1)).isEqualTo(field.shape().dimension(axis));
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    append(slot, view, 0, view.offset(), bytes);
    return bytes.toByteArray();
  }

  private static void append(
      byte[] slot, FieldView view, int axis, long offset, ByteArrayOutputStream bytes) {
    int elementBytes = view.dtype().alignmentBytes();
    TensorShape shape = view.shape();
    if (axis == shape.rank()) {
      bytes.write(slot, (int) offset, elementBytes);
      return;
    }
    for (long i = 0; i < shape.dimension(axis); i++) {
      append(slot, view, axis + 1, offset + i * view.strides().get(axis) * elementBytes, bytes);
    }
  }
}
