// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Shares of a slab, which are counted.
@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class SlabTest {
  @ParameterizedTest
  @ValueSource(longs = {1, 4096, (2 << 20) - 1, 2 << 20, (6 << 20) + 1})
  void memoryIsAlignedZeroAndWritableToItsLastByte(long size) {
    HostSlab slab = HostSlab.allocate(size);
    assertThat(slab.size()).isEqualTo(size);
    assertThat(slab.address() % Slab.ALIGNMENT_BYTES).isZero();
    assertThat(slab.segment().get(ValueLayout.JAVA_BYTE, size - 1)).isZero();
    slab.segment().fill((byte) 7);
    assertThat(slab.segment().get(ValueLayout.JAVA_BYTE, size - 1)).isEqualTo((byte) 7);
    assertThat(LiveResources.snapshot().hostBytes()).isEqualTo(size);
    slab.release();
  }

  @Test
  void theLastShareFreesIt() {
    HostSlab slab = HostSlab.allocate(4096);
    assertThat(slab.retain()).isSameAs(slab);
    slab.release();
    assertThat(slab.isClosed()).isFalse();
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(1);
    slab.release();
    assertThat(slab.isClosed()).isTrue();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void aClosedSlabSaysSo() {
    HostSlab slab = HostSlab.allocate(4096);
    slab.release();
    String message = "this slab of 4096 bytes on host is closed";
    assertMisuse(slab::release, message);
    assertMisuse(slab::release, message);
    assertMisuse(slab::retain, message);
    assertMisuse(slab::address, message);
    assertMisuse(slab::segment, message);
    assertMisuse(() -> slab.beforeFree(() -> {}), message);
  }

  private static void assertMisuse(Runnable call, String message) {
    assertThatExceptionOfType(MisuseException.class).isThrownBy(call::run).withMessage(message);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, -1, Long.MIN_VALUE})
  void aSlabNeedsASize(long size) {
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> HostSlab.allocate(size));
  }

  @Test
  void whatMustBeDoneBeforeIsDoneLastAskedFirst() {
    HostSlab slab = HostSlab.allocate(4096);
    List<String> done = new ArrayList<>();
    for (String name : List.of("first", "second", "third")) {
      slab.beforeFree(() -> {
        done.add(name);
        assertThat(LiveResources.snapshot().slabs()).as("not freed yet").isEqualTo(1);
      });
    }
    slab.retain().release();
    assertThat(done).isEmpty();
    slab.release();
    assertThat(done).containsExactly("third", "second", "first");
  }

  @Test
  void whatFailsBeforeKeepsTheMemoryAndStopsNothingElse() {
    HostSlab slab = HostSlab.allocate(4096);
    HostSlab next = HostSlab.allocate(4096);
    long address = slab.address();
    List<String> done = new ArrayList<>();
    slab.beforeFree(() -> done.add("first asked"));
    slab.beforeFree(() -> {
      throw new MisuseException("second asked");
    });
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> Slab.releaseAll(List.of(slab, next)))
        .withMessage("second asked");
    assertThat(done).containsExactly("first asked");
    assertThat(next.isClosed()).isTrue();
    assertThat(LiveResources.snapshot().hostBytes()).isEqualTo(4096);
    assertThat(MemorySegment.ofAddress(address).reinterpret(1).get(ValueLayout.JAVA_BYTE, 0))
        .isZero();
    slab.free();
    LiveResources.add(LiveResources.Kind.HOST_BYTES, -4096);
    LiveResources.add(LiveResources.Kind.SLABS, -1);
  }

  /// The thread that frees a slab may need a lock that another thread holds while it asks the
  /// slab.
  @Test
  void whatMustBeDoneBeforeHoldsNoLock() throws Exception {
    HostSlab slab = HostSlab.allocate(4096);
    try (ExecutorService executor = Executors.newSingleThreadExecutor()) {
      slab.beforeFree(() -> {
        Future<?> other = executor.submit(() -> slab.beforeFree(() -> {}));
        assertThatThrownBy(() -> other.get(10, TimeUnit.SECONDS))
            .hasCauseInstanceOf(MisuseException.class);
      });
      slab.release();
    }
  }

  /// In any order of the last releases, the slab is freed once, and no thread gets a share of it
  /// afterwards.
  @Test
  void sharesAreCountedByManyThreads() throws Exception {
    int threads = 4;
    try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
      for (int round = 0; round < 300; round++) {
        HostSlab slab = HostSlab.allocate(4096);
        AtomicInteger freed = new AtomicInteger();
        slab.beforeFree(freed::incrementAndGet);
        CyclicBarrier start = new CyclicBarrier(threads);
        List<Callable<Integer>> workers = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
          boolean owner = i == 0;
          workers.add(() -> {
            start.await();
            return owner ? releaseOnce(slab) : retainAndRelease(slab, freed);
          });
        }
        for (Future<Integer> worker : executor.invokeAll(workers)) {
          assertThat(worker.get()).as("shares of freed memory in round %s", round).isZero();
        }
        assertThat(freed).hasValue(1);
        assertThat(slab.isClosed()).isTrue();
      }
    }
  }

  private static int releaseOnce(Slab slab) {
    slab.release();
    return 0;
  }

  /// @return how often the thread got a share of freed memory
  private static int retainAndRelease(Slab slab, AtomicInteger freed) {
    int wrong = 0;
    for (int i = 0; i < 50; i++) {
      try {
        slab.retain();
      } catch (MisuseException _) {
        return wrong;
      }
      wrong += freed.get();
      slab.release();
    }
    return wrong;
  }

  @Test
  void whatTheKernelCannotMapIsAFailureOfOurs() {
    assertThatExceptionOfType(TransferException.class)
        .isThrownBy(() -> HostSlab.allocate(1L << 62))
        .withMessageContaining("ENOMEM");
  }
}
