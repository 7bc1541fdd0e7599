// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.convert.HostNormalizer;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// A slot in host memory. Bytes that a reader reads or copies are in the slot when its call
/// returns.
final class HostSlot extends Slot {
  /// The most bytes that one piece copies.
  static final long STEP_BYTES = 4 << 20;

  /// The most bytes that the planning thread copies itself, since waking another thread would take
  /// longer.
  static final long AT_ONCE_BYTES = 128 << 10;

  private final long bytes;

  HostSlot(long bytes) {
    this.bytes = bytes;
  }

  @Override
  Slab newSlab() {
    return Admission.slab(bytes);
  }

  private MemorySegment memory() {
    return ((HostSlab) slab()).segment();
  }

  @Override
  MemorySegment hostMemory(HostWrites hostWrites) {
    return memory().asSlice(hostWrites.slotOffset(), hostWrites.bytes());
  }

  @Override
  Target target() {
    return Target.of(slab());
  }

  @Override
  boolean gatherAtOnce() {
    Gathering gathering = gathering();
    if (gathering == null || gathering.bytes() > AT_ONCE_BYTES) {
      return false;
    }
    gathering.copy(memory(), 0, gathering.rows());
    return true;
  }

  @Override
  List<BatchWork.Piece> gatherPieces() {
    Gathering gathering = gathering();
    if (gathering == null || gathering.bytes() <= AT_ONCE_BYTES) {
      return List.of();
    }
    List<BatchWork.Piece> pieces = new ArrayList<>();
    int rows = gathering.rows();
    int step = Math.max(1, Math.ceilDiv(rows, (int) Math.ceilDiv(gathering.bytes(), STEP_BYTES)));
    for (int row = 0; row < rows; row += step) {
      int first = row;
      int end = Math.min(rows, row + step);
      pieces.add(new BatchWork.Piece.Work(() -> gathering.copy(memory(), first, end)));
    }
    return pieces;
  }

  @Override
  List<BatchWork.Piece> startCopies(BatchPlan<?> plan) {
    List<BatchWork.Piece> pieces = new ArrayList<>();
    for (Copy2D copy : gathering() == null ? plan.copies() : plan.hostCopies()) {
      if (copy.isContiguous()) {
        split(copy, pieces);
      } else {
        splitRows(copy, pieces);
      }
    }
    return pieces;
  }

  @Override
  List<BatchWork.Piece> startNormalizing(BatchPlan<?> plan) {
    List<BatchWork.Piece> pieces = new ArrayList<>();
    long bytes = 0;
    for (NormalizedRows rows : plan.normalized()) {
      long rowBytes = Math.max(rows.what().fromBytes(), rows.what().toBytes());
      long step = Math.max(1, STEP_BYTES / rowBytes);
      for (long row = 0; row < rows.rows(); row += step) {
        long first = row;
        long end = Math.min(rows.rows(), row + step);
        pieces.add(
            new BatchWork.Piece.Work(() -> HostNormalizer.normalize(rows, memory(), first, end)));
      }
      bytes += rows.rows() * rowBytes;
    }
    if (bytes > AT_ONCE_BYTES) {
      return pieces;
    }
    for (NormalizedRows rows : plan.normalized()) {
      HostNormalizer.normalize(rows, memory(), 0, rows.rows());
    }
    return List.of();
  }

  private void split(Copy2D copy, List<BatchWork.Piece> pieces) {
    MemorySegment memory = memory();
    long all = copy.bytes();
    for (long done = 0; done < all; done += STEP_BYTES) {
      long from = copy.source() + done;
      long to = copy.target() + done;
      long step = Math.min(STEP_BYTES, all - done);
      pieces.add(
          new BatchWork.Piece.Work(() -> MemorySegment.copy(memory, from, memory, to, step)));
    }
  }

  private void splitRows(Copy2D copy, List<BatchWork.Piece> pieces) {
    MemorySegment memory = memory();
    long most = Math.max(1, STEP_BYTES / copy.width());
    for (long row = 0; row < copy.rows(); row += most) {
      Copy2D some = copy.rows(row, Math.min(most, copy.rows() - row));
      pieces.add(new BatchWork.Piece.Work(() -> some.run(memory, memory)));
    }
  }

  @Override
  boolean isReady() {
    return true;
  }

  @Override
  void awaitReady() {}

  @Override
  void orderAfterConsumer(boolean poison) {
    if (poison) {
      memory().fill(POISON);
    }
  }

  @Override
  void close() {
    endGathering();
  }
}
