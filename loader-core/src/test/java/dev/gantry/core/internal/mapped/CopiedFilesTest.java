// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.Serial;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// When files are copied to host memory and freed, and what is gathered from the copies.
@ExtendWith(NoLeaks.class)
class CopiedFilesTest {
  private static final int BYTES = (9 << 20) + 77;
  private static final long SLAB_BYTES = (BYTES + 4095) / 4096 * 4096L;

  @TempDir Path folder;
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final Stores stores = new Stores(calls, List.of());
  private final List<SourceFile> open = new ArrayList<>();
  private volatile long availableBytes = 1L << 30;
  private KeptFiles mapped;

  @BeforeEach
  void open() {
    mapped = mapped(stores::open, 16_384);
  }

  private KeptFiles mapped(BiFunction<Location, CachePolicy, SourceFile> opener, int mostEntries) {
    return new KeptFiles(
        calls,
        opener,
        new RegisteredPages(calls, folder.resolve("registered")),
        () -> availableBytes,
        mostEntries);
  }

  @AfterEach
  void close() {
    mapped.close();
    open.forEach(SourceFile::close);
    stores.close();
  }

  private SourceFile file(int seed) {
    Path path = TestFiles.write(folder.resolve("file" + seed), seed, BYTES);
    SourceFile file = stores.open(Location.of(path), CachePolicy.BUFFERED);
    open.add(file);
    return file;
  }

  private Availability<KeptFiles.Lease> lease(SourceFile file, long bytes, boolean now) {
    return mapped.lease(null, Map.of(file, bytes), now);
  }

  private KeptFiles.Lease leaseNow(SourceFile file) {
    return lease(file, 1, true).orElseThrow(AssertionError::new);
  }

  private static String reason(Availability<KeptFiles.Lease> lease) {
    return switch (lease) {
      case Availability.Absent<KeptFiles.Lease>(String reason) -> reason;
      case Availability.Present<KeptFiles.Lease> present ->
          throw new AssertionError("present: " + present);
    };
  }

  /// Returns the bytes of host memory in use, without idle memory.
  private static long hostBytes() {
    HostSlab.freeIdle();
    return LiveResources.snapshot().hostBytes();
  }

  @Test
  void aFileIsCopiedWhenItHasBeenReadOnce() {
    SourceFile file = file(1);
    assertThat(reason(lease(file, BYTES - 1, false))).isEqualTo("not read again yet");
    assertThat(reason(lease(file, 1, false))).isEqualTo("it is being copied");
    mapped.awaitKept();
    try (KeptFiles.Lease lease = lease(file, 1, false).orElseThrow(AssertionError::new)) {
      assertThat(hostBytes()).isEqualTo(SLAB_BYTES);
      assertThat(lease.file(file.file()).identity()).isEqualTo(file.identity());
    }
  }

  @Test
  void filesThatNoBatchUsesAreGivenUpForALoadThatNeedsTheirMemory() {
    leaseNow(file(1)).close();
    SourceFile used = file(2);
    try (KeptFiles.Lease _ = leaseNow(used)) {
      assertThatThrownBy(() -> Admission.ofHost(1L << 50).close())
          .isInstanceOf(TransferException.class);
      assertThat(mapped.unusedBytes()).as("that is of no use").isEqualTo(SLAB_BYTES);
      // Other processes allocate and free memory at the same time, so the test tries until the
      // figures fit.
      for (int i = 0; i < 100 && mapped.unusedBytes() > 0; i++) {
        try {
          Admission.ofHost(HostMemory.availableBytes().orElseThrow() + (1 << 20)).close();
        } catch (TransferException _) {
          // Less memory is available by now.
        }
      }
      assertThat(mapped.unusedBytes()).isZero();
      assertThat(mapped.keepsAny(true)).as("the file in use").isTrue();
      assertThat(hostBytes()).isEqualTo(SLAB_BYTES);
    }
  }

  /// An error whose own message cannot be made for want of memory.
  private static final class Exhausted extends OutOfMemoryError {
    @Serial private static final long serialVersionUID = 1;

    @Override
    public String getMessage() {
      throw new OutOfMemoryError("made up, too");
    }
  }

  @Test
  void filesAreKeptAfterAnErrorForWhichThereIsNoMemoryToLogIt() {
    SourceFile first = file(1);
    SourceFile second = file(2);
    AtomicBoolean exhausted = new AtomicBoolean(true);
    try (KeptFiles keeping =
        mapped(
            (location, policy) -> {
              if (exhausted.get()) {
                throw new Exhausted();
              }
              return stores.open(location, policy);
            },
            16_384)) {
      mapped.close();
      mapped = keeping;
      assertThat(reason(lease(first, BYTES, false))).isEqualTo("it is being copied");
      mapped.awaitKept();
      exhausted.set(false);
      for (SourceFile file : List.of(first, second)) {
        assertThat(reason(lease(file, 2 * BYTES, false))).isEqualTo("it is being copied");
        mapped.awaitKept();
        lease(file, 1, false).orElseThrow(AssertionError::new).close();
      }
    }
  }

  /// The copy of a large file on a slow disk takes minutes.
  @Test
  void closingEndsACopyThatIsUnderWay() throws InterruptedException {
    SourceFile file = file(1);
    Thread closing = new Thread(mapped::close);
    int before = calls.count(FaultyFileCalls.Function.PREAD);
    calls.at(
        FaultyFileCalls.Function.PREAD,
        before + 1,
        new FaultyFileCalls.After(() -> {
          closing.start();
          Latches.awaitThat(() -> closing.getState() == Thread.State.WAITING);
        }));
    assertThat(reason(lease(file, BYTES, false))).isEqualTo("it is being copied");
    mapped.awaitKept();
    closing.join();
    assertThat(calls.count(FaultyFileCalls.Function.PREAD)).isEqualTo(before + 1);
    assertThat(hostBytes()).isZero();
  }

  @Test
  void rowsAreCopiedToAnyPlace() {
    SourceFile first = file(1);
    SourceFile second = file(2);
    byte[][] bytes = {TestFiles.bytes(1, BYTES), TestFiles.bytes(2, BYTES)};
    Random random = new Random(5);
    Gathers.Builder gathers = new Gathers.Builder(0);
    byte[] expected = new byte[1 << 20];
    int to = 0;
    while (to < expected.length - 3000) {
      int length = 1 + random.nextInt(2000);
      int which = random.nextInt(2);
      int from = random.nextInt(10) == 0 ? BYTES - length : random.nextInt(BYTES - length);
      gathers.add((which == 0 ? first : second).file(), from, length, to);
      System.arraycopy(bytes[which], from, expected, to, length);
      to += length + random.nextInt(20);
    }
    KeptFiles.Lease lease =
        mapped.lease(null, Map.of(first, 1L, second, 1L), true).orElseThrow(AssertionError::new);
    HostSlab slab = HostSlab.allocate(expected.length);
    try (Gathering gathering = new Gathering(mapped, lease, gathers.build(), List.of())) {
      int middle = gathering.rows() / 2;
      gathering.copy(slab.segment(), middle, gathering.rows());
      gathering.copy(slab.segment(), 0, middle);
      assertThat(Arrays.mismatch(TestFiles.bytes(new Region(slab, 0, expected.length)), expected))
          .isEqualTo(-1);
    } finally {
      slab.release();
    }
  }

  @Test
  void aFileThatWasChangedIsReadAgain() throws IOException {
    SourceFile file = file(1);
    leaseNow(file).close();
    Files.write(file.file().path(), new byte[1], StandardOpenOption.APPEND);
    assertThat(reason(lease(file, 1, false))).endsWith("was modified since it was copied");
    assertThat(hostBytes()).isZero();
    assertThat(reason(lease(file, BYTES, true)))
        .isEqualTo("not kept: another file has taken its place");
    SourceFile now = stores.open(file.file(), CachePolicy.BUFFERED);
    open.add(now);
    leaseNow(now).close();
  }

  /// Has the next call of a function wait for a latch, which this returns.
  ///
  /// @param begun opened when the call has begun
  private CountDownLatch hold(FaultyFileCalls.Function function, CountDownLatch begun) {
    CountDownLatch goOn = new CountDownLatch(1);
    calls.at(
        function,
        calls.count(function) + 1,
        new FaultyFileCalls.After(() -> {
          begun.countDown();
          await(goOn);
        }));
    return goOn;
  }

  @Test
  void aCopyWhoseFileWasReplacedMeanwhileIsFreed() throws IOException {
    SourceFile file = file(1);
    CountDownLatch reads = new CountDownLatch(1);
    CountDownLatch goOn = hold(FaultyFileCalls.Function.PREAD, reads);
    assertThat(reason(lease(file, BYTES, false))).isEqualTo("it is being copied");
    await(reads);
    Path other = TestFiles.write(folder.resolve("other"), 9, BYTES);
    Files.move(other, file.file().path(), StandardCopyOption.REPLACE_EXISTING);
    SourceFile now = stores.open(file.file(), CachePolicy.BUFFERED);
    open.add(now);
    assertThat(reason(lease(now, 1, false))).isEqualTo("not read again yet");
    goOn.countDown();
    mapped.awaitKept();
    assertThat(hostBytes()).isZero();
  }

  @Test
  void aFileThatIsBeingCopiedIsRemembered() {
    try (KeptFiles few = mapped(stores::open, 1)) {
      SourceFile file = file(1);
      CountDownLatch reads = new CountDownLatch(1);
      CountDownLatch goOn = hold(FaultyFileCalls.Function.PREAD, reads);
      assertThat(reason(few.lease(null, Map.of(file, (long) BYTES), false)))
          .isEqualTo("it is being copied");
      await(reads);
      assertThat(few.lease(null, Map.of(file(2), 1L), false).toOptional()).isEmpty();
      goOn.countDown();
      few.awaitKept();
      few.lease(null, Map.of(file, 1L), false).orElseThrow(AssertionError::new).close();
    }
  }

  @Test
  void aWaitForACopyThatIsInterruptedLeavesTheThreadInterrupted() throws Exception {
    SourceFile file = file(1);
    CountDownLatch reads = new CountDownLatch(1);
    CountDownLatch goOn = hold(FaultyFileCalls.Function.PREAD, reads);
    assertThat(reason(lease(file, BYTES, false))).isEqualTo("it is being copied");
    await(reads);
    FutureTask<Boolean> waits =
        new FutureTask<>(() -> {
          assertThat(reason(lease(file, 1, true))).isEqualTo("it is being copied");
          return Thread.interrupted();
        });
    Thread waiting = Thread.ofPlatform().start(waits);
    Latches.awaitThat(() -> waiting.getState() == Thread.State.WAITING);
    waiting.interrupt();
    boolean interrupted = waits.get();
    goOn.countDown();
    assertThat(interrupted).isTrue();
  }

  @Test
  void aFileThatDoesNotFitIsTriedAgainAfterItWasReadTwice() {
    SourceFile file = file(1);
    availableBytes = BYTES;
    assertThat(reason(lease(file, BYTES, false))).isEqualTo("it is being copied");
    mapped.awaitKept();
    // Half of the memory would just hold the file.
    availableBytes = 2 * BYTES;
    assertThat(reason(lease(file, 1, false))).isEqualTo("not read again yet");
    assertThat(reason(lease(file, BYTES - 1, false))).startsWith("not kept: it has");
    assertThat(reason(lease(file, BYTES, false))).isEqualTo("it is being copied");
    mapped.awaitKept();
    lease(file, BYTES, false).orElseThrow(AssertionError::new).close();
    mapped.freeIdle();
    assertThat(reason(lease(file, 1, false))).isEqualTo("not read again yet");
  }

  private boolean serves(SourceFile file) {
    Optional<KeptFiles.Lease> lease = lease(file, 1, false).toOptional();
    lease.ifPresent(KeptFiles.Lease::close);
    return lease.isPresent();
  }

  @Test
  void noMoreUsedFilesAreGivenUpThanTheMachineNeeds() {
    SourceFile first = file(1);
    SourceFile second = file(2);
    try (KeptFiles.Lease _ = leaseNow(first);
        KeptFiles.Lease _ = leaseNow(second)) {
      availableBytes = 2 * SLAB_BYTES;
      // A thread checks the available memory four times a second.
      Latches.awaitThat(() -> serves(first) != serves(second));
      SourceFile left = serves(first) ? second : first;
      // Who needs the file now gets it, and it stays.
      availableBytes = 1L << 30;
      leaseNow(left).close();
      assertThat(serves(left)).isTrue();
    }
  }

  @Test
  void aCopyIsGivenUpWhenMemoryBecomesScarce() {
    SourceFile idle = file(1);
    SourceFile used = file(2);
    leaseNow(idle).close();
    try (KeptFiles.Lease _ = leaseNow(used)) {
      availableBytes = SLAB_BYTES;
      // A thread checks the available memory four times a second.
      Latches.awaitThat(() -> hostBytes() <= SLAB_BYTES);
      assertThat(hostBytes()).isEqualTo(SLAB_BYTES);
      assertThat(reason(lease(idle, BYTES, true))).contains("which leaves half of the available");
    }
    mapped.freeIdle();
    assertThat(hostBytes()).isZero();
  }

  /// A lease calls statx for each file of the batch; the second call fails.
  @Test
  void aLeaseThatFailsLeavesTheFilesThatItHas() {
    SourceFile first = file(1);
    SourceFile second = file(2);
    leaseNow(first).close();
    leaseNow(second).close();
    Map<SourceFile, Long> both = new LinkedHashMap<>();
    both.put(first, 1L);
    both.put(second, 1L);
    calls.at(
        FaultyFileCalls.Function.STAT,
        calls.count(FaultyFileCalls.Function.STAT) + 2,
        new FaultyFileCalls.Fails(Errno.EIO));
    assertThatThrownBy(() -> mapped.lease(null, both, false))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("statx");
    mapped.freeIdle();
    assertThat(hostBytes()).isZero();
  }

  @Test
  void aSlowLookAtAFileHoldsUpNoOtherBatch() throws InterruptedException {
    SourceFile slow = file(1);
    SourceFile other = file(2);
    leaseNow(slow).close();
    CountDownLatch looks = new CountDownLatch(1);
    CountDownLatch goOn = hold(FaultyFileCalls.Function.STAT, looks);
    Thread first = Thread.ofPlatform().start(() -> leaseNow(slow).close());
    await(looks);
    leaseNow(other).close();
    goOn.countDown();
    first.join();
    mapped.close();
  }

  @Test
  void whatIsKnownOfFilesThatAreNotReadAgainIsForgotten() {
    try (KeptFiles few = mapped(stores::open, 2)) {
      SourceFile kept = file(1);
      SourceFile second = file(2);
      SourceFile third = file(3);
      few.lease(null, Map.of(kept, 1L), true).orElseThrow(AssertionError::new).close();
      assertThat(few.lease(null, Map.of(second, BYTES - 1L), false).toOptional()).isEmpty();
      assertThat(few.lease(null, Map.of(third, 1L), false).toOptional()).isEmpty();
      assertThat(few.entries()).isEqualTo(2);
      // If the cache still remembered the first read of the file, it would copy the file now.
      assertThat(reason(few.lease(null, Map.of(second, 1L), false)))
          .isEqualTo("not read again yet");
      few.lease(null, Map.of(kept, 1L), false).orElseThrow(AssertionError::new).close();
    }
  }

  @Test
  void aFailingReadKeepsNothing() {
    SourceFile file = file(1);
    calls.from(FaultyFileCalls.Function.PREAD, 2, new FaultyFileCalls.Fails(Errno.EIO));
    assertThat(reason(lease(file, 1, true))).startsWith("not kept: pread failed");
    assertThat(hostBytes()).isZero();
  }
}
