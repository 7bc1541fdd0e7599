// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(NoLeaks.class)
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PendingReadsTest {
  private static final Location LOCATION = Location.of("held://pending/data");
  private static final int AT_ONCE = 40;

  private final Queue<ReadRequest> held = new ConcurrentLinkedQueue<>();
  private final List<Throwable> failures = new ArrayList<>();

  /// A file whose reads end when the test ends them.
  private SourceFile file;

  @BeforeEach
  void open() {
    file = new SourceFile(LOCATION, new HeldFile());
  }

  @AfterEach
  void close() {
    file.close();
  }

  private class HeldFile implements StoredFile {
    @Override
    public long size() {
      return Long.MAX_VALUE;
    }

    @Override
    public Object identity() {
      return this;
    }

    @Override
    public int requestsAtOnce() {
      return AT_ONCE;
    }

    @Override
    public void read(ReadRequest request) {
      held.add(request);
      Runnable _ =
          request
              .cancellation()
              .whenCancelled(() ->
                  request.failed(new TransferException("read", "held", new Failure.Cancelled())));
    }

    @Override
    public void close() {}
  }

  private void start(PendingReads reads, long bytes, Runnable whenDone) {
    // The address is not real, because nothing accesses the memory.
    MemorySegment memory = MemorySegment.ofAddress(4096).reinterpret(bytes);
    reads.start(file, memory, 0, bytes, whenDone, failures::add);
  }

  @Test
  void aReadWhoseFollowUpFailsHasFailed() {
    try (PendingReads reads = new PendingReads()) {
      TransferException reason = new TransferException("copy", "there", new Failure.EndOfFile(1));
      start(
          reads,
          100,
          () -> {
            throw reason;
          });
      held.remove().completed();
      reads.drain();
      assertThat(failures).containsExactly(reason);
    }
  }

  @Test
  void aDefectOfAStoreNamesFileAndOffset() {
    try (PendingReads reads = new PendingReads()) {
      start(reads, 100, () -> {});
      held.remove().failed(new IndexOutOfBoundsException("out"));
      reads.drain();
      assertThat(failures)
          .singleElement()
          .hasToString("java.lang.IllegalStateException: reading held://pending/data at 0");
    }
  }

  @Test
  void oneFailureLeavesTheOtherReadsAlone() {
    List<Integer> came = new ArrayList<>();
    try (PendingReads reads = new PendingReads()) {
      start(reads, 100, () -> came.add(0));
      start(reads, 100, () -> came.add(1));
      held.remove().failed(new TransferException("read", "one", new Failure.EndOfFile(1)));
      held.remove().completed();
      reads.drain();
    }
    assertThat(failures).hasSize(1);
    assertThat(came).containsExactly(1);
  }

  @Test
  void aReadThatTheLinkDoesNotNeedWaitsForOneToEnd() throws InterruptedException {
    CountDownLatch started = new CountDownLatch(1);
    try (PendingReads reads = new PendingReads()) {
      for (int i = 0; i < LinkWindow.FIRST; i++) {
        start(reads, 100, () -> {});
      }
      Thread starting =
          Thread.ofVirtual()
              .start(() -> {
                start(reads, 100, () -> {});
                started.countDown();
              });
      assertThat(started.await(50, TimeUnit.MILLISECONDS)).isFalse();
      assertThat(held).hasSize(LinkWindow.FIRST);
      held.remove().completed();
      started.await();
      starting.join();
      assertThat(held).hasSize(LinkWindow.FIRST);
    }
    assertThat(failures).hasSize(LinkWindow.FIRST);
  }

  @Test
  void bytesUnderWayAreBounded() throws InterruptedException {
    CountDownLatch started = new CountDownLatch(1);
    try (PendingReads reads = new PendingReads()) {
      start(reads, PendingReads.MAX_BYTES, () -> {});
      Thread starting =
          Thread.ofVirtual()
              .start(() -> {
                start(reads, 1, () -> {});
                started.countDown();
              });
      assertThat(started.await(50, TimeUnit.MILLISECONDS)).isFalse();
      held.remove().completed();
      started.await();
      starting.join();
    }
  }

  /// The limit keeps requests to a server that is down from being repeated for ever.
  @Test
  void aServerIsAskedAgainAsOftenAsReadsSucceedAndSomeMore() {
    try (PendingReads reads = new PendingReads()) {
      start(reads, 100, () -> {});
      start(reads, 100, () -> {});
      start(reads, 100, () -> {});
      // A success gives back a retry, and no more than there were.
      held.remove().completed();
      ReadRequest read = held.remove();
      for (int i = 0; i < PendingReads.MAX_RETRIES; i++) {
        assertThat(read.mayRetry()).isTrue();
      }
      assertThat(read.mayRetry()).isFalse();
      held.remove().completed();
      assertThat(read.mayRetry()).isTrue();
      assertThat(read.mayRetry()).isFalse();
    }
  }

  @Test
  void theSlowestFewAreAskedForASecondTime() throws InterruptedException {
    CountDownLatch hedged = new CountDownLatch(1);
    CountDownLatch next = new CountDownLatch(1);
    List<Integer> others = new CopyOnWriteArrayList<>();
    try (PendingReads reads = new PendingReads()) {
      for (int i = 0; i < 15; i++) {
        start(reads, 100, () -> {});
      }
      List<ReadRequest> slow = List.of(held.remove(), held.remove(), held.remove());
      slow.get(0).whenSlow(hedged::countDown);
      slow.get(1).whenSlow(() -> others.add(1));
      slow.get(1).whenSlow(next::countDown);
      slow.get(2).whenSlow(() -> others.add(2));
      held.forEach(ReadRequest::completed);
      hedged.await();
      assertThat(others).isEmpty();
      slow.get(0).completed();
      next.await();
    }
  }

  @Test
  void cancellingEndsReadsAndTheirSuccessors() {
    try (PendingReads reads = new PendingReads()) {
      start(reads, 100, () -> {});
      reads.cancel();
      start(reads, 100, () -> {});
    }
    assertThat(failures)
        .hasSize(2)
        .allSatisfy(failure ->
            assertThat(((TransferException) failure).failure()).isEqualTo(new Failure.Cancelled()));
  }

  @Test
  void aReadIsBrokenOffByAnInterruption() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment target = arena.allocate(100);
      Thread.currentThread().interrupt();
      TransferException failure =
          catchThrowableOfType(TransferException.class, () -> file.read(target, 0, 100, false));
      assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void aReadThatFailsEndsThoseOfTheSameCall() {
    TransferException reason = new TransferException("read", "held", new Failure.EndOfFile(1));
    StoredFile failing =
        new HeldFile() {
          @Override
          public void read(ReadRequest request) {
            if (request.offset() == 0) {
              super.read(request);
            } else {
              request.failed(reason);
            }
          }
        };
    MemorySegment memory = MemorySegment.ofAddress(4096).reinterpret(9 << 20);
    try (SourceFile two = new SourceFile(LOCATION, failing)) {
      assertThat(catchThrowable(() -> two.read(memory, 0, memory.byteSize(), false)))
          .isSameAs(reason);
    }
  }

  /// A file may be read millions of times.
  @Test
  void aFileForgetsReadsThatHaveEnded() {
    try (PendingReads reads = new PendingReads()) {
      WeakReference<ReadRequest> read = new WeakReference<>(ended(reads));
      Latches.awaitThat(() -> {
        System.gc();
        return read.refersTo(null);
      });
    }
  }

  private ReadRequest ended(PendingReads reads) {
    start(reads, 100, () -> {});
    ReadRequest read = held.remove();
    read.completed();
    return read;
  }
}
