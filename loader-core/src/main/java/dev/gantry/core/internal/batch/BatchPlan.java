// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.spi.Copy2D;
import java.util.List;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Says how to fill one slot of a ring with one batch: first the reads and host writes, each to
/// its own offset; when all of them are done, the copies within the slot.
///
/// @param reads the reads from files; the slot is their slab 0
/// @param hostWrites the bytes that the CPU writes
/// @param copies the copies within the slot; no target overlaps a read, a host write or a copy's source
/// @param gathers the bytes that the reads bring, as ranges of files that go straight to their
///     final places. A transport that can copy bytes from any offset to any other offset does the
///     gathers, instead of the reads and of all copies except the copies of host writes.
///     [Gathers#NONE] if there are none
/// @param normalized the samples of the slot that are normalised last. A transport that gathers
///     may normalise samples as it gathers them, and then does not write the offsets at which the
///     samples would lie before
/// @param label the source's description of the batch, handed to the consumer
/// @param otherwise makes the same batch by reads, if this plan has gathers only; null if this plan has all
///     reads that it needs
public record BatchPlan<T>(
    List<Read> reads,
    HostWrites hostWrites,
    List<Copy2D> copies,
    Gathers gathers,
    List<NormalizedRows> normalized,
    T label,
    @Nullable Supplier<BatchPlan<T>> otherwise) {
  public BatchPlan {
    reads = List.copyOf(reads);
    copies = List.copyOf(copies);
    normalized = List.copyOf(normalized);
  }

  /// Makes a plan without gathers, and with nothing to normalise.
  public BatchPlan(List<Read> reads, HostWrites hostWrites, List<Copy2D> copies, T label) {
    this(reads, hostWrites, copies, Gathers.NONE, List.of(), label, null);
  }

  /// Returns the plan for a transport that does not gather: this plan, unless it has gathers only.
  public BatchPlan<T> byReads() {
    return otherwise == null ? this : otherwise.get();
  }

  /// Returns this plan with other writers of the same bytes.
  public BatchPlan<T> withHostWrites(HostWrites others) {
    return new BatchPlan<>(
        reads,
        others,
        copies,
        gathers,
        normalized,
        label,
        otherwise == null ? null : () -> otherwise.get().withHostWrites(others));
  }

  /// Returns this plan with samples that are normalised at the end.
  ///
  /// @param otherLabel the new plan's label
  /// @param others makes the same change in the plan that [#byReads] returns
  public BatchPlan<T> withNormalized(
      List<NormalizedRows> rows, T otherLabel, UnaryOperator<BatchPlan<T>> others) {
    return new BatchPlan<>(
        reads,
        hostWrites,
        copies,
        gathers,
        rows,
        otherLabel,
        otherwise == null ? null : () -> others.apply(otherwise.get()));
  }

  /// Returns the copies of bytes that the CPU writes; no gather replaces these copies.
  public List<Copy2D> hostCopies() {
    long end = hostWrites.slotOffset() + hostWrites.bytes();
    return copies.stream()
        .filter(copy -> copy.source() >= hostWrites.slotOffset() && copy.source() < end)
        .toList();
  }

  /// Returns how many bytes are read or gathered, and written by the CPU.
  public long bytes() {
    long brought =
        otherwise == null ? reads.stream().mapToLong(Read::length).sum() : gathers.bytes();
    return hostWrites.bytes() + brought;
  }

  /// Checks that this plan stays within a slot.
  ///
  /// @param number the batch's number, for messages
  /// @param requestBytes the most bytes of one read
  /// @param hostBytes the most bytes of host writes
  /// @throws MisuseException if a part of the plan is outside of the slot, or breaks a limit
  public void requireFits(long number, long slotBytes, long requestBytes, long hostBytes) {
    try {
      for (Read read : reads) {
        requireFits(read, requestBytes);
        requireWithin("a read", read.slabOffset(), read.length(), slotBytes);
      }
      if (hostWrites.bytes() > hostBytes) {
        throw new MisuseException(
            hostWrites.bytes() + " bytes of host writes; at most " + hostBytes);
      }
      requireWithin("host writes", hostWrites.slotOffset(), hostWrites.bytes(), slotBytes);
      for (Copy2D copy : copies) {
        requireWithin("a copy", copy.source(), copy.sourceEnd() - copy.source(), slotBytes);
        requireWithin("a copy", copy.target(), copy.targetEnd() - copy.target(), slotBytes);
      }
      for (int i = 0; i < gathers.count(); i++) {
        requireWithin("a gather", gathers.slotOffset(i), gathers.length(i), slotBytes);
      }
      for (NormalizedRows rows : normalized) {
        requireWithin("samples", rows.from(), rows.fromEnd() - rows.from(), slotBytes);
        requireWithin("results", rows.to(), rows.toEnd() - rows.to(), slotBytes);
      }
    } catch (MisuseException | ArithmeticException e) {
      throw new MisuseException("batch " + number + " does not fit its slot: " + e.getMessage());
    }
  }

  private static void requireFits(Read read, long requestBytes) {
    boolean fits =
        read.slab() == 0
            && read.fileOffset() >= 0
            && read.required() > 0
            && read.required() <= read.length()
            && read.length() <= requestBytes
            && (read.slabOffset() | read.length() | read.fileOffset()) % PlanLimits.BLOCK_BYTES
                == 0;
    if (!fits) {
      throw new MisuseException("no read of whole blocks, at most " + requestBytes + ": " + read);
    }
  }

  private static void requireWithin(String what, long offset, long length, long slotBytes) {
    if (offset < 0 || length > slotBytes || offset > slotBytes - length) {
      throw new MisuseException(
          what + " of " + length + " bytes at " + offset + " passes the slot of " + slotBytes);
    }
  }
}
