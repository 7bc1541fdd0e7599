// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.ring.RingScheduler.Task;
import dev.gantry.testing.schedules.Scenario;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Two readers fill two slots with three batches of two pieces each, for one consumer. The
/// consumer gets all batches in order, each after both of its pieces are done, and all threads
/// end. In subclasses the ring fails, is closed in between, or plans batches before they have a
/// slot.
class RingScenario implements Scenario {
  static final int BATCHES = 3;
  private static final int SLOT_BYTES = 64;

  final RingScheduler<String> scheduler;
  private final int mostWithoutSlot;
  private final List<Slot> slots = List.of(new HostSlot(SLOT_BYTES), new HostSlot(SLOT_BYTES));

  /// The number of finished pieces of each batch. The search does not switch threads at accesses
  /// to array elements.
  private final int[] pieces = new int[BATCHES];

  /// The batches that the consumer got.
  final List<Long> got = new ArrayList<>();

  RingScenario() {
    this(0);
  }

  private RingScenario(int mostWithoutSlot) {
    slots.forEach(Slot::allocateIfNeeded);
    scheduler =
        new RingScheduler<>(
            slots, mostWithoutSlot, new RingStatistics.Counter(new SessionCounters()));
    this.mostWithoutSlot = mostWithoutSlot;
  }

  @Override
  public List<Work> threads() {
    return List.of(this::read, this::read, this::consume);
  }

  /// Works like [RingReader], without files.
  private void read() {
    for (Task<String> task = scheduler.take(); task != null; task = scheduler.take()) {
      switch (task) {
        case Task.AskSource<String>(long number, @Nullable Slot slot) -> ask(number, slot);
        case Task.RunPiece<String>(BatchWork<String> batch, BatchWork.Piece piece) -> {
          ((BatchWork.Piece.Work) piece).work().run();
          if (scheduler.isLastDone(batch)) {
            assertThat(batch.startNext()).isEmpty();
            scheduler.filled(batch);
          }
        }
      }
    }
  }

  void ask(long number, @Nullable Slot slot) {
    if (number == BATCHES) {
      scheduler.exhaust(number, slot);
      return;
    }
    boolean shared = mostWithoutSlot > 0 && scheduler.endAsking();
    Slot own = slot == null ? scheduler.awaitSlot(number) : slot;
    if (own == null) {
      return;
    }
    HostWrites.HostWriter writer = _ -> pieces[(int) number]++;
    BatchPlan<String> plan =
        new BatchPlan<>(
            List.of(), new HostWrites(0, SLOT_BYTES, List.of(writer, writer)), List.of(), "");
    scheduler.begin(new BatchWork<>(number, own, plan, 0), shared, false);
  }

  void consume() {
    for (BatchWork<String> batch = next(); batch != null; batch = next()) {
      assertThat(batch.number()).isEqualTo(got.size());
      assertThat(pieces[(int) batch.number()]).isEqualTo(2);
      got.add(batch.number());
      scheduler.leave();
      if (scheduler.enter()) {
        scheduler.giveBack(batch.slot(), true);
      }
    }
    boolean _ = scheduler.close();
  }

  @Nullable BatchWork<String> next() {
    return scheduler.awaitNext(_ -> {
      throw new AssertionError("nothing is gathered here");
    });
  }

  @Override
  public void check() {
    assertThat(got).containsExactly(0L, 1L, 2L);
    end();
  }

  final void end() {
    scheduler.awaitIdle();
    slots.forEach(Slot::release);
  }

  /// The second batch fails: the consumer gets the first batch, then the failure.
  static final class Failing extends RingScenario {
    private boolean failed;

    @Override
    void ask(long number, @Nullable Slot slot) {
      if (number == 1) {
        scheduler.failAsking(number, false, new IllegalStateException("on purpose"));
      } else {
        super.ask(number, slot);
      }
    }

    @Override
    void consume() {
      try {
        super.consume();
      } catch (IllegalStateException _) {
        failed = true;
        boolean _ = scheduler.close();
      }
    }

    @Override
    public void check() {
      assertThat(failed).isTrue();
      assertThat(got).containsExactly(0L);
      end();
    }
  }

  /// Another thread closes the ring at any time: no thread waits for ever, and no slot is lost.
  static class Closed extends RingScenario {
    Closed() {
      this(0);
    }

    private Closed(int mostWithoutSlot) {
      super(mostWithoutSlot);
    }

    @Override
    public List<Work> threads() {
      List<Work> all = new ArrayList<>(super.threads());
      all.add(() -> {
        boolean _ = scheduler.close();
        scheduler.awaitIdle();
      });
      return all;
    }

    @Override
    void consume() {
      try {
        super.consume();
      } catch (MisuseException e) {
        assertThat(e).hasMessageContaining("closed");
      }
    }

    @Override
    public void check() {
      end();
    }
  }

  /// The third batch is planned while the first two batches have the slots.
  static final class PlannedAhead extends RingScenario {
    PlannedAhead() {
      super(1);
    }
  }

  static final class ClosedAhead extends Closed {
    ClosedAhead() {
      super(1);
    }
  }
}
