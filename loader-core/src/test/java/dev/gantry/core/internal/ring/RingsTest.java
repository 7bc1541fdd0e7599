// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.convert.Converters;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class RingsTest {
  private static RingOptions options() {
    TransferOptions transfer = TransferOptions.defaults().withThreads(2);
    long slotBytes = 4 * Recipes.BLOCK;
    return new RingOptions(Device.HOST, 2, slotBytes, slotBytes, transfer, false);
  }

  private static Batches<Integer> batches() {
    return new Batches<>(100, RingContract::number);
  }

  /// The transfer engine is still open: another thread is about to close it.
  @Test
  @SuppressWarnings("try") // Closed at first.
  void aRingOfAClosedSessionReadsNothing() {
    try (TransferEngine engine = new TransferEngine(Libc.INSTANCE);
        Converters converters = new Converters();
        Rings rings = new Rings(engine, converters)) {
      rings.close();
      for (int i = 0; i < 20; i++) {
        Batches<Integer> source = batches();
        assertThatThrownBy(() -> rings.open(options(), source))
            .isInstanceOf(MisuseException.class)
            .hasMessage("this session is closed");
        assertThat(source.asked()).isZero();
        assertThat(source.closed()).isEqualTo(1);
      }
      assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
    }
  }

  @Test
  void aRingThatIsClosedBeforeItStartsReadsNothing() {
    try (TransferEngine engine = new TransferEngine(Libc.INSTANCE)) {
      Batches<Integer> source = batches();
      Slot slot = new HostSlot(4 * Recipes.BLOCK);
      slot.allocateIfNeeded();
      PrefetchRing<Integer> ring =
          new PrefetchRing<>(
              options(),
              source,
              engine.onDemand(Device.HOST, options().transfer(), source::opened),
              List.of(slot),
              engine.counters(),
              _ -> {});
      ring.close();
      ring.start();
      assertThatThrownBy(ring::next)
          .hasMessage("no more batches: the dataset or its session is closed");
      assertThat(source.asked()).isZero();
      assertThat(source.closed()).isEqualTo(1);
    }
  }

  /// The same happens when the heap has no space for the batch's own objects.
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void aBatchThatCannotBeHandedOverDoesNotKeepTheRingFromClosing() {
    try (TransferEngine engine = new TransferEngine(Libc.INSTANCE)) {
      Slot slot = new HostSlot(4 * Recipes.BLOCK);
      slot.allocateIfNeeded();
      PrefetchRing<Integer> ring =
          new PrefetchRing<>(
              options(),
              batches(),
              engine.onDemand(Device.HOST, options().transfer(), (_, _) -> {}),
              List.of(slot),
              engine.counters(),
              _ -> {});
      ring.start();
      // The ring stalls once the batch has filled its only slot.
      Latches.awaitThat(() -> ring.statistics().stalls() > 0);
      slot.release();
      assertThatThrownBy(ring::next).hasMessage("a slot without memory");
      assertThatThrownBy(ring::next).hasMessage("a slot without memory");
      ring.close();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void aSourceWhoseClosingClosesTheSessionIsToldThatItCannot(boolean sessionFirst) {
    GantrySession gantry = GantrySession.open();
    BatchPlanSource<Integer> source =
        new BatchPlanSource<>() {
          @Override
          public Optional<BatchPlan<Integer>> next() {
            return Optional.empty();
          }

          @Override
          public void close() {
            gantry.close();
          }
        };
    PrefetchRing<Integer> ring = gantry.ring(options(), source);
    AutoCloseable first = sessionFirst ? gantry : ring;
    assertThatThrownBy(first::close)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("by its own source or host writers");
    ring.close();
    gantry.close();
  }

  /// The ring may ask its source for the first batch before `ring` returns.
  @Test
  @SuppressWarnings("try") // The source tries to close it.
  void aSourceThatClosesTheSessionIsToldThatItCannot() {
    AtomicReference<Throwable> told = new AtomicReference<>();
    CountDownLatch asked = new CountDownLatch(1);
    try (GantrySession gantry = GantrySession.open()) {
      BatchPlanSource<Integer> source =
          new BatchPlanSource<>() {
            @Override
            public Optional<BatchPlan<Integer>> next() {
              try {
                gantry.close();
              } catch (MisuseException e) {
                told.set(e);
              }
              asked.countDown();
              return Optional.empty();
            }

            @Override
            public void close() {}
          };
      PrefetchRing<Integer> ring = gantry.ring(options(), source);
      await(asked);
      assertThat(told.get()).hasMessageContaining("by its own source or host writers");
      assertThat(ring.next()).isEmpty();
    }
  }

  /// A cancellation may live for many rings.
  @Test
  @Timeout(60)
  void theCancellationForgetsARingThatIsClosed() {
    Cancellation cancellation = new Cancellation();
    WeakReference<Object> ring = new WeakReference<>(closedRing(cancellation));
    Latches.awaitThat(() -> {
      System.gc();
      return ring.refersTo(null);
    });
    cancellation.cancel();
  }

  private static Object closedRing(Cancellation cancellation) {
    TransferOptions transfer = options().transfer().withCancellation(cancellation);
    long slotBytes = options().slotBytes();
    try (GantrySession session = GantrySession.open();
        PrefetchRing<Integer> ring =
            session.ring(
                new RingOptions(Device.HOST, 2, slotBytes, slotBytes, transfer, false),
                batches())) {
      ring.next().orElseThrow().close();
      return ring;
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void noPartOfABatchPlanPassesTheLastByteOfItsSlot(int past) {
    int slot = 4 * Recipes.BLOCK;
    Location file = Location.of(Path.of("file"));
    Read read = new Read(file, 0, slot, slot, 0, past * Recipes.BLOCK);
    Gathers.Builder gathers = new Gathers.Builder(1);
    gathers.add(file, 5, 2, slot - 2 + past);
    Normalization pixel =
        new Normalization(DType.U8, DType.F32, 1, false, List.of(1f), List.of(0f));
    NormalizedRows samples = new NormalizedRows(pixel, slot - 2 + past, 1, 0, 2);
    NormalizedRows results = new NormalizedRows(pixel, 0, 1, slot - 8 + 4 * past, 2);
    for (BatchPlan<String> plan :
        List.of(
            plan(List.of(read), Gathers.NONE, List.of()),
            plan(List.of(), gathers.build(), List.of()),
            plan(List.of(), Gathers.NONE, List.of(samples)),
            plan(List.of(), Gathers.NONE, List.of(results)))) {
      ThrowingCallable check = () -> plan.requireFits(3, slot, slot, 0);
      if (past == 0) {
        assertThatCode(check).doesNotThrowAnyException();
      } else {
        assertThatThrownBy(check)
            .isInstanceOf(MisuseException.class)
            .hasMessageStartingWith("batch 3 does not fit its slot: ");
      }
    }
  }

  /// Gathers replace all other copies.
  @Test
  void onlyCopiesOfBytesThatTheCpuWritesAreMadeBesideGathers() {
    List<Copy2D> copies =
        Stream.of(49, 50, 99, 100).map(source -> Copy2D.ofRow(source, 200, 1)).toList();
    BatchPlan<String> plan =
        new BatchPlan<>(List.of(), new HostWrites(50, 50, List.of()), copies, "label");
    assertThat(plan.hostCopies()).isEqualTo(copies.subList(1, 3));
  }

  private static BatchPlan<String> plan(
      List<Read> reads, Gathers gathers, List<NormalizedRows> normalized) {
    return new BatchPlan<>(reads, HostWrites.NONE, List.of(), gathers, normalized, "label", null);
  }
}
