// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Which freed memory the next slab gets, and when the kernel gets it back.
class HostReuseTest {
  private static final long MIB = 1L << 20;

  private final Deque<Runnable> later = new ArrayDeque<>();
  private long availableBytes = 1 << 30;
  private final HostReuse reuse = new HostReuse(() -> availableBytes, later::add);

  @AfterEach
  void giveBack() {
    reuse.freeIdle();
    assertThat(reuse.keptBytes()).isZero();
  }

  private HugePages filled(long size) {
    HugePages pages = reuse.map(size);
    MemorySegment.ofAddress(pages.address()).reinterpret(size).fill((byte) 1);
    return pages;
  }

  @Test
  void theNextOfItsSizeGetsIt() {
    HugePages first = filled(8 * MIB);
    reuse.free(first);
    assertThat(reuse.keptBytes()).isEqualTo(8 * MIB);
    HugePages second = filled(8 * MIB);
    assertThat(second).isEqualTo(first);
    assertThat(reuse.keptBytes()).isZero();
    reuse.free(second);
  }

  @Test
  void theSmallestThatIsLargeEnoughIsTaken() {
    HugePages large = filled(12 * MIB);
    HugePages fits = filled(9 * MIB);
    HugePages small = filled(3 * MIB);
    reuse.free(large);
    reuse.free(fits);
    reuse.free(small);
    HugePages next = filled(8 * MIB);
    assertThat(next.address()).isEqualTo(fits.address());
    HugePages other = filled(8 * MIB);
    assertThat(other.address()).as("12 MiB are too many for 8").isNotEqualTo(large.address());
    reuse.free(next);
    reuse.free(other);
  }

  @Test
  void whatIsSmallIsNotKept() {
    reuse.free(filled(MIB - 1));
    assertThat(reuse.keptBytes()).isZero();
  }

  @Test
  void atMostAQuarterOfWhatIsAvailableIsKept() {
    availableBytes = 40 * MIB;
    HugePages first = filled(5 * MIB);
    HugePages second = filled(6 * MIB);
    HugePages large = filled(13 * MIB);
    reuse.free(first);
    reuse.free(second);
    assertThat(reuse.keptBytes()).as("the first gave way").isEqualTo(6 * MIB);
    reuse.free(large);
    assertThat(reuse.keptBytes()).isEqualTo(6 * MIB);
  }

  @Test
  void itGoesWhenMemoryGetsShort() {
    reuse.free(filled(8 * MIB));
    assertThat(later).hasSize(1);
    later.remove().run();
    assertThat(reuse.keptBytes()).isPositive();
    assertThat(later).as("the next look").hasSize(1);
    availableBytes = MIB;
    later.remove().run();
    assertThat(reuse.keptBytes()).isZero();
    assertThat(later).as("nothing to look at").isEmpty();
  }

  @Test
  void aSlabGetsAnEarlierOnesMemory() {
    HostSlab.freeIdle();
    HostSlab first = HostSlab.allocate(4 * MIB);
    long address = first.address();
    first.release();
    HostSlab second = HostSlab.allocate(4 * MIB);
    assertThat(second.address()).isEqualTo(address);
    second.release();
    HostSlab.freeIdle();
    assertThat(HostReuse.PROCESS.keptBytes()).isZero();
  }
}
