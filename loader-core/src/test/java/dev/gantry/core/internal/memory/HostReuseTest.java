// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The choice of freed host memory for the next slab, and the time at which the kernel gets it
/// back.
@ExtendWith(NoLeaks.class)
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostReuseTest {
  private static final long MIB = 1L << 20;

  private final List<HostSlab> held = new ArrayList<>();

  @BeforeEach
  void nothingIsIdle() {
    HostSlab.freeIdle();
    assertThat(HostSlab.idleBytes()).isZero();
  }

  @AfterEach
  void release() {
    Slab.releaseAll(held);
  }

  private HostSlab filled(long size) {
    HostSlab slab = HostSlab.allocate(size);
    slab.segment().fill((byte) 1);
    return slab;
  }

  private HostSlab next(long size) {
    HostSlab slab = filled(size);
    held.add(slab);
    return slab;
  }

  private static long hostBytes() {
    return LiveResources.snapshot().hostBytes();
  }

  @Test
  void theNextOfItsSizeGetsIt() {
    HostSlab first = filled(8 * MIB);
    long address = first.address();
    first.release();
    assertThat(HostSlab.idleBytes()).isEqualTo(8 * MIB);
    assertThat(next(8 * MIB).address()).isEqualTo(address);
    assertThat(HostSlab.idleBytes()).isZero();
  }

  @Test
  void theSmallestThatIsLargeEnoughIsTaken() {
    HostSlab large = filled(12 * MIB);
    HostSlab fits = filled(9 * MIB);
    HostSlab small = filled(3 * MIB);
    long tooLarge = large.address();
    long fitting = fits.address();
    Slab.releaseAll(List.of(large, fits, small));
    assertThat(next(8 * MIB).address()).isEqualTo(fitting);
    assertThat(next(8 * MIB).address()).as("12 MiB are too many for 8").isNotEqualTo(tooLarge);
    assertThat(HostSlab.idleBytes()).isEqualTo(15 * MIB);
  }

  @Test
  void whatIsSmallIsNotKept() {
    filled(MIB - 1).release();
    assertThat(HostSlab.idleBytes()).isZero();
    assertThat(hostBytes()).isZero();
  }

  @Test
  void smallSlabsTakeNothing() {
    filled(MIB).release();
    next(MIB - 1);
    assertThat(HostSlab.idleBytes()).isEqualTo(MIB);
  }

  @Test
  void idleBytesCountAsTheHosts() {
    HostSlab first = filled(8 * MIB);
    assertThat(hostBytes()).isEqualTo(8 * MIB);
    first.release();
    assertThat(hostBytes()).as("idle").isEqualTo(8 * MIB);
    assertThat(LiveResources.snapshot().slabs()).isZero();
    next(7 * MIB);
    assertThat(hostBytes()).as("used again").isEqualTo(7 * MIB);
  }

  @Test
  void atMostAQuarterOfWhatIsAvailableIsKept() {
    Pool<HugePages> idle = HostSlab.idle(() -> 40 * MIB);
    idle.keep(HugePages.map(5 * MIB), 5 * MIB);
    idle.keep(HugePages.map(6 * MIB), 6 * MIB);
    assertThat(idle.size()).as("the first gave way").isEqualTo(6 * MIB);
    idle.keep(HugePages.map(13 * MIB), 13 * MIB);
    assertThat(idle.size()).isEqualTo(6 * MIB);
    idle.free();
    assertThat(hostBytes()).isZero();
  }

  @Test
  void aReservationThatNeedsItsRoomGetsIt() {
    filled(8 * MIB).release();
    Admission.ofHost(MIB).close();
    assertThat(HostSlab.idleBytes()).as("there is room besides").isEqualTo(8 * MIB);
    // Other processes allocate and free memory at the same time, so the test tries until the
    // figures fit.
    for (int i = 0; i < 100 && HostSlab.idleBytes() > 0; i++) {
      long available = HostMemory.availableBytes().orElseThrow();
      try {
        Admission.ofHost(available - MIB).close();
      } catch (TransferException _) {
        // Less memory is available by now.
      }
    }
    assertThat(HostSlab.idleBytes()).isZero();
    assertThat(hostBytes()).isZero();
  }

  /// Does `work` once, when the registered pages of other processes are read. The thread that reads
  /// them holds the lock of [HostMemory].
  private static final class AtLook extends ForwardingFileCalls {
    private final AtomicReference<@Nullable Runnable> work;

    AtLook(Runnable work) {
      super(Libc.INSTANCE);
      this.work = new AtomicReference<>(work);
    }

    @Override
    public int user() {
      Runnable first = work.getAndSet(null);
      if (first != null) {
        first.run();
      }
      return super.user();
    }
  }

  @Test
  void aReservationThatNeedsItAndAThreadThatFreesItDoNotWaitForEachOther(@TempDir Path folder)
      throws InterruptedException {
    filled(8 * MIB).release();
    long size = HostMemory.kernelBytes().orElseThrow() / 8 & -MIB;
    HostSlab large = HostSlab.allocate(size);
    long wanted = HostMemory.kernelBytes().orElseThrow() + size / 2;
    Thread freeing = Thread.ofPlatform().daemon().unstarted(HostSlab::freeIdle);
    AtLook calls =
        new AtLook(() -> {
          freeing.start();
          Latches.awaitThat(
              () -> HostSlab.idleBytes() == 0 && freeing.getState() == Thread.State.BLOCKED);
          large.release();
        });
    RegisteredPages before = HostMemory.registered;
    HostMemory.registered = new RegisteredPages(calls, folder);
    try {
      // The next question asks the kernel again.
      HostMemory.unmappedOnly(0);
      Admission.ofHost(wanted).close();
    } finally {
      HostMemory.registered = before;
      HostMemory.look();
    }
    freeing.join();
    assertThat(hostBytes()).isZero();
  }

  @Test
  void aSessionThatClosesGivesItBack() {
    filled(8 * MIB).release();
    GantrySession.open().close();
    assertThat(hostBytes()).isZero();
  }
}
