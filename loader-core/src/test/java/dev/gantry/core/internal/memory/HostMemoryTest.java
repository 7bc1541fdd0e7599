// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.StridedRange;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.HostFill;
import dev.gantry.core.internal.session.OffloadBuffer;
import dev.gantry.core.internal.session.Sliced;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Host memory that is admitted before it is allocated.
@ExtendWith(NoLeaks.class)
class HostMemoryTest {
  /// Returns more than half of the available memory, so that it can be admitted once and not
  /// twice.
  private static long most() {
    return HostMemory.availableBytes().orElseThrow() / 10 * 6 & -8192;
  }

  @Test
  void moreMemoryThanThereIsIsRefused() {
    Admission.ofHost(4096).close();
    long available = HostMemory.availableBytes().orElseThrow();
    assertThat(available).isPositive().isLessThan(1L << 50);
    for (long absurd : new long[] {1L << 50, Long.MAX_VALUE}) {
      assertThatExceptionOfType(TransferException.class)
          .isThrownBy(() -> Admission.ofHost(absurd).close())
          .withMessageContainingAll(absurd + " bytes of host memory", "ENOMEM", "available");
    }
  }

  @Test
  void noByteIsPromisedTwice() {
    long most = most();
    try (Admission _ = Admission.ofHost(most)) {
      assertThatThrownBy(() -> Admission.ofHost(most).close())
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("besides " + most + " reserved by other loads");
    }
    Admission.ofHost(most).close();
  }

  @Test
  void anAllocationThatIsRefusedOrCancelledKeepsNothing() {
    Admission.Slabs small = new Admission.Slabs(Device.HOST, List.of(4096L), 0);
    Admission.Slabs absurd = new Admission.Slabs(Device.HOST, List.of(1L << 50), 0);
    List<List<Slab>> slabs = new ArrayList<>();
    Cancellation cancellation = new Cancellation();
    long before = HostMemory.promised();
    assertThatThrownBy(
            () -> Admission.allocate(List.of(small, absurd), slabs, "load less", cancellation))
        .isInstanceOf(TransferException.class)
        .hasMessageEndingWith("load less");
    assertThat(HostMemory.promised()).isEqualTo(before);
    cancellation.cancel();
    assertThatThrownBy(() -> Admission.allocate(List.of(small), slabs, "load less", cancellation))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cancelled");
    assertThat(HostMemory.promised()).isEqualTo(before);
    assertThat(slabs.stream().flatMap(List::stream)).isEmpty();
  }

  @Test
  void whatIsMappedAndNotTouchedIsNotAvailableToOthers() {
    long most = most();
    HostSlab slab = Admission.slab(most);
    try {
      assertThatThrownBy(() -> Admission.ofHost(most).close())
          .isInstanceOf(TransferException.class);
    } finally {
      slab.release();
      HostSlab.freeIdle();
    }
    Admission.ofHost(most).close();
  }

  @Test
  void pagesThatWereTouchedAreNoLongerPromised() {
    long bytes = 16L << 20;
    HugePages memory = HugePages.map(bytes);
    try {
      LazyPages pages = new LazyPages(memory.address(), bytes);
      assertThat(pages.untouchedBytes()).isEqualTo(bytes);
      MemorySegment segment = MemorySegment.ofAddress(memory.address()).reinterpret(bytes);
      segment.asSlice(bytes / 2).fill((byte) 1);
      assertThat(pages.untouchedBytes()).isEqualTo(bytes / 2);
      segment.fill((byte) 1);
      assertThat(pages.untouchedBytes()).isZero();
    } finally {
      memory.unmap();
    }
  }

  @Test
  void offloadBuffersAndRingsKeepTheirMemoryFromOthers() {
    long most = most();
    RingOptions options =
        new RingOptions(Device.HOST, 2, most / 2, 4096, TransferOptions.defaults(), false);
    try (GantrySession gantry = GantrySession.open()) {
      try (OffloadBuffer _ = OffloadBuffer.prepare(Device.HOST, List.of(most))) {
        assertThatThrownBy(() -> OffloadBuffer.prepare(Device.HOST, List.of(most)))
            .isInstanceOf(TransferException.class);
        assertThatThrownBy(() -> gantry.ring(options, Optional::empty))
            .isInstanceOf(TransferException.class);
      }
      try (PrefetchRing<?> _ = gantry.ring(options, Optional::empty)) {
        assertThatThrownBy(() -> gantry.ring(options, Optional::empty))
            .isInstanceOf(TransferException.class);
        assertThatThrownBy(() -> OffloadBuffer.prepare(Device.HOST, List.of(most)))
            .isInstanceOf(TransferException.class);
      }
    }
  }

  private static ResidentImage resident(Path file, long bytes) {
    return ResidentImage.allocate(
        1, "", List.of(new ResidentSource(Location.of(file), bytes, 0, bytes)), Device.HOST);
  }

  @Test
  void residentImagesKeepTheirMemoryFromOthers(@TempDir Path folder) {
    long most = most();
    Path file = folder.resolve("file");
    try (ResidentImage image = resident(file, most)) {
      assertThat(image.targets()).hasSize(1);
      assertThatThrownBy(() -> resident(file, most)).isInstanceOf(TransferException.class);
      HostMemory.look();
      assertThatThrownBy(() -> resident(file, most)).isInstanceOf(TransferException.class);
      assertThatThrownBy(() -> Admission.ofHost(most).close())
          .isInstanceOf(TransferException.class);
    }
    Admission.ofHost(most).close();
  }

  @Test
  void slicesAreRefusedWhatAnotherOperationHas(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("sparse");
    long most = most();
    setLength(file, most);
    Sliced slice = new Sliced(List.of(StridedRange.of(new Extent(file, 0, most), 0)), most);
    HostSlab slab = Admission.slab(most);
    try (GantrySession gantry = GantrySession.open()) {
      assertThatThrownBy(() ->
              gantry.loadSlices(
                  List.of(Device.HOST), List.of(List.of(slice)), TransferOptions.defaults()))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOMEM");
    } finally {
      slab.release();
      HostSlab.freeIdle();
    }
  }

  @Test
  void aLoadThatTheCpuMakesKeepsItsMemoryFromOthers() {
    long most = most();
    try (GantrySession gantry = GantrySession.open()) {
      List<HostFill> second = List.of(new HostFill(most, _ -> {}));
      List<HostFill> first =
          List.of(
              new HostFill(
                  most,
                  _ ->
                      assertThatThrownBy(
                              () -> gantry.fill(second, Device.HOST, TransferOptions.defaults()))
                          .isInstanceOf(TransferException.class)));
      gantry.fill(first, Device.HOST, TransferOptions.defaults()).close();
    }
  }

  /// Calls of a load that has its memory and waits for its first bytes.
  private static final class Waiting extends ForwardingFileCalls {
    private final CountDownLatch reads = new CountDownLatch(1);
    private final CountDownLatch fails = new CountDownLatch(1);

    Waiting() {
      super(Libc.INSTANCE);
    }

    @Override
    public long pread(int fd, MemorySegment target, long length, long offset) {
      reads.countDown();
      try {
        fails.await();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      return -Errno.EIO.code();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void twoLoadsAtOnceAreNotGivenTheSameMemory(boolean slices, @TempDir Path folder)
      throws Exception {
    Path file = folder.resolve("sparse");
    long most = most();
    setLength(file, most);
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(file, 0, most), 1));
    Sliced slice = new Sliced(List.of(StridedRange.of(new Extent(file, 0, most), 0)), most);
    TransferOptions one = TransferOptions.defaults().withThreads(1);
    Waiting calls = new Waiting();
    try (ExecutorService executor = Executors.newSingleThreadExecutor();
        GantrySession waiting = Sessions.over(calls);
        GantrySession other = GantrySession.open()) {
      Future<?> first =
          executor.submit(() ->
              slices
                  ? waiting.loadSlices(List.of(Device.HOST), List.of(List.of(slice)), one)
                  : waiting.load(wanted, Device.HOST, one));
      try {
        calls.reads.await();
        assertThatThrownBy(() -> other.load(wanted, Device.HOST, TransferOptions.defaults()))
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("ENOMEM");
      } finally {
        calls.fails.countDown();
      }
      assertThatThrownBy(first::get)
          .isInstanceOf(ExecutionException.class)
          .hasMessageContaining("EIO");
    }
    Admission.ofHost(most).close();
  }

  private static void setLength(Path file, long bytes) throws IOException {
    try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
      sparse.setLength(bytes);
    }
  }
}
