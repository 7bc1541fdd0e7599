// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Memory that is asked for before it is taken.
@ExtendWith(NoLeaks.class)
class HostMemoryTest {
  /// More than half of what there is, so that it is there once and not twice.
  private static long most() {
    return HostMemory.availableBytes().orElseThrow() / 10 * 6;
  }

  @Test
  void moreMemoryThanThereIsIsRefused() {
    HostMemory.require(4096);
    long available = HostMemory.availableBytes().orElseThrow();
    assertThat(available).isPositive().isLessThan(1L << 50);
    for (long absurd : new long[] {1L << 50, Long.MAX_VALUE}) {
      assertThatExceptionOfType(TransferException.class)
          .isThrownBy(() -> HostMemory.require(absurd))
          .withMessageContainingAll(absurd + " bytes of host memory", "ENOMEM", "available");
    }
  }

  @Test
  void noByteIsPromisedTwice() {
    long most = most();
    try (HostMemory.Reservation first = HostMemory.reserve(most)) {
      assertThatThrownBy(() -> HostMemory.require(most))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("besides " + most + " reserved by other loads");
      first.keep(most / 10);
      HostMemory.require(most);
      first.keep(most);
      HostMemory.require(most);
    }
    HostMemory.require(most);
  }

  /// A load that has its memory, and waits for its first bytes.
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

  @Test
  void twoLoadsAtOnceAreNotGivenTheSameMemory(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("sparse");
    long most = most();
    setLength(file, most);
    List<Wanted> wanted = List.of(new Wanted(new Extent(file, 0, most), 1));
    Waiting calls = new Waiting();
    try (ExecutorService executor = Executors.newSingleThreadExecutor();
        GantrySession waiting = Sessions.over(calls);
        GantrySession other = GantrySession.open()) {
      Future<?> first =
          executor.submit(
              () -> waiting.load(wanted, Device.HOST, TransferOptions.defaults().withThreads(1)));
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
    HostMemory.require(most);
  }

  private static void setLength(Path file, long bytes) throws IOException {
    try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
      sparse.setLength(bytes);
    }
  }
}
