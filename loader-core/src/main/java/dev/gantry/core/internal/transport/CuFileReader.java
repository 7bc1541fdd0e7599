// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cufile.BatchTransfers;
import dev.gantry.core.internal.cufile.BatchTransfers.Request;
import dev.gantry.core.internal.cufile.CuFileRule;
import dev.gantry.core.internal.cufile.CuFileRule.Way;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import dev.gantry.core.spi.Residency;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/// Reads by cuFile in the way that a [CuFileRule] chooses. Collects reads for a batch until there are enough. For one
/// thread.
final class CuFileReader {
  private final CuFileRule rule;
  private final int depth;
  private final BooleanSupplier mayContinue;
  private final List<Deferred> collected = new ArrayList<>();

  /// A read that was collected for a batch.
  ///
  /// @param event the read's event, which began when the read was collected
  record Deferred(OpenFile file, Read read, Target target, Residency residency, TimedEvent event) {
    CuFileTransport cuFile() {
      return file.transport().cuFile();
    }

    /// Whether the read should go past the page cache.
    boolean wantDirect() {
      return residency != Residency.HOT;
    }
  }

  /// @param depth the number of reads that this thread has to do
  /// @param mayContinue whether to go on waiting for room in a batch
  CuFileReader(CuFileRule rule, int depth, BooleanSupplier mayContinue) {
    this.rule = rule;
    this.depth = depth;
    this.mayContinue = mayContinue;
  }

  /// Whether to go on waiting for room in a batch.
  boolean mayContinue() {
    return mayContinue.getAsBoolean();
  }

  /// Chooses the way of calling cuFile for a read.
  Way way(CuFileTransport file, Read read, Target target) {
    Way way =
        rule.choose(
            CuFileRule.Question.of(
                read.length(),
                read.fileOffset(),
                read.slabOffset(),
                depth,
                target.order() != null));
    boolean there =
        switch (way) {
          case SYNC -> true;
          case BATCH -> file.batches() instanceof Availability.Present;
          case STREAM -> file.hasStreams();
        };
    return there ? way : Way.SYNC;
  }

  /// Collects a read for a batch.
  ///
  /// @return whether a batch is full: see [#flush]
  boolean collect(Deferred read) {
    collected.add(read);
    return collected.size() >= BatchTransfers.MAX_ENTRIES;
  }

  /// Does the collected reads.
  ///
  /// @param done called with each read whose bytes are there
  /// @param failed called with each read that has to be done another way
  void flush(Consumer<Deferred> done, Consumer<Deferred> failed) {
    if (collected.isEmpty()) {
      return;
    }
    List<Deferred> reads = List.copyOf(collected);
    collected.clear();
    List<Request> requests =
        reads.stream()
            .map(read -> read.cuFile().request(read.read(), read.target(), read.wantDirect()))
            .toList();
    BatchTransfers batches =
        reads.getFirst().cuFile().batches().orElseThrow(IllegalStateException::new);
    BitSet arrived = new BitSet();
    try {
      batches.run(
          requests,
          mayContinue,
          number -> {
            arrived.set(number);
            done.accept(reads.get(number));
          });
    } catch (TransferException e) {
      if (e.failure() instanceof Failure.Cancelled) {
        throw e;
      }
      // The reads are then done one by one, which shows which of them fails and how the others go
      // on.
      for (int i = 0; i < reads.size(); i++) {
        if (!arrived.get(i)) {
          failed.accept(reads.get(i));
        }
      }
    }
  }
}
