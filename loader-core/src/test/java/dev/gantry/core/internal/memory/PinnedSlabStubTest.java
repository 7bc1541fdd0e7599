// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Pinning allocates all pages at once, so pinned memory needs admission first.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class PinnedSlabStubTest {
  /// The memory that stays available. It is large, because other programs allocate and free some
  /// during the tests.
  private static final long LEFT = 1L << 30;

  private static final long BYTES = 16L << 20;

  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final RegisteredPages before = HostMemory.registered;
  private RegisteredPages others;

  @BeforeEach
  void leaveLittle(@TempDir Path folder) {
    others = new RegisteredPages(Libc.INSTANCE, folder.resolve("registered"));
    context.idlePinned().free();
    HostMemory.registered = others;
    HostMemory.look();
    others.add(HostMemory.availableBytes().orElseThrow() - LEFT);
  }

  @AfterEach
  void giveBack() {
    others.add(-others.ownBytes());
    HostMemory.registered = before;
    HostMemory.look();
  }

  @Test
  void whatIsNotThereIsNotPinned() {
    PinnedSlab.allocate(context, BYTES).release();
    assertThat(context.idlePinned().size()).isEqualTo(BYTES);
    assertThatThrownBy(() -> PinnedSlab.allocate(context, 2 * LEFT))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOMEM");
    assertThat(context.idlePinned().size()).as("given back for it").isZero();
  }

  @Test
  void idlePinnedMemoryIsGivenBackForOtherMemory() {
    PinnedSlab.allocate(context, BYTES).release();
    // Other processes allocate and free memory at the same time, so the test tries until the
    // figures fit.
    for (int i = 0; i < 100 && context.idlePinned().size() > 0; i++) {
      try {
        Admission.ofHost(HostMemory.availableBytes().orElseThrow() + BYTES / 2).close();
      } catch (TransferException _) {
        // Less memory is available by now.
      }
    }
    assertThat(context.idlePinned().size()).isZero();
  }

  @Test
  void aReservationIsPinnedOutOf() {
    long before = HostMemory.promised();
    // The second round gets memory that is already pinned.
    for (int i = 0; i < 2; i++) {
      try (Admission admission = Admission.ofHost(2 * BYTES)) {
        PinnedSlab slab = admission.pin(context, BYTES);
        assertThat(HostMemory.promised() - before).isEqualTo(BYTES);
        slab.release();
      }
      assertThat(HostMemory.promised()).isEqualTo(before);
    }
  }

  /// Pinning gigabytes takes seconds. The memory must not count twice meanwhile, or other loads
  /// would be refused.
  @Test
  void whatIsMappedIsNoLongerPromised() {
    long before = HostMemory.promised();
    try (Admission admission = Admission.ofHost(BYTES)) {
      HugePages pages = admission.map(BYTES);
      assertThat(HostMemory.promised()).isEqualTo(before);
      pages.unmap();
    }
    assertThat(HostMemory.promised()).isEqualTo(before);
  }
}
