// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CopyPiece;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// When files are registered and deregistered, and what the kernel fetches from them.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class KeptFilesGpuTest {
  private static final int BYTES = 3 << 20;

  @TempDir Path folder;
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final FileCalls calls = FileCalls.ofPlatform();
  private final Stores stores = new Stores(calls, List.of());
  private final List<SourceFile> open = new ArrayList<>();
  private final Arena hot = Arena.ofConfined();
  private long availableBytes = 1L << 30;
  private RegisteredPages registered;
  private KeptFiles mapped;

  @BeforeEach
  void open() {
    registered = new RegisteredPages(calls, folder.resolve("registered"));
    mapped = mapped(calls, stores::open);
  }

  /// Makes resident copies over the shared count of registered pages, as another session does.
  private KeptFiles mapped(
      FileCalls closing, BiFunction<Location, CachePolicy, SourceFile> opener) {
    return new KeptFiles(closing, opener, registered, () -> availableBytes, 16_384);
  }

  @AfterEach
  void close() {
    mapped.close();
    open.forEach(SourceFile::close);
    stores.close();
    hot.close();
  }

  private SourceFile file(int seed) {
    Path file = TestFiles.write(folder.resolve("file" + seed), seed, BYTES);
    PageCache.keep(file, 0, BYTES, hot);
    return open(Location.of(file));
  }

  private SourceFile open(Location location) {
    SourceFile file = stores.open(location, CachePolicy.BUFFERED);
    open.add(file);
    return file;
  }

  private Availability<KeptFiles.Lease> lease(SourceFile file, long bytes, boolean now) {
    return mapped.lease(context, Map.of(file, bytes), now);
  }

  private KeptFiles.Lease leaseNow(SourceFile file) {
    return lease(file, BYTES, true).orElseThrow(AssertionError::new);
  }

  private static String reason(Availability<KeptFiles.Lease> lease) {
    return switch (lease) {
      case Availability.Absent<KeptFiles.Lease>(String reason) -> reason;
      case Availability.Present<KeptFiles.Lease> present ->
          throw new AssertionError("present: " + present);
    };
  }

  private static long pinned() {
    return LiveResources.snapshot().pinnedBytes();
  }

  @Test
  void aFileIsRegisteredWhenItHasBeenReadOnce() {
    SourceFile file = file(1);
    assertThat(reason(lease(file, BYTES / 2, false))).isEqualTo("not read again yet");
    assertThat(reason(lease(file, BYTES / 2 - 1, false))).isEqualTo("not read again yet");
    assertThat(pinned()).isZero();
    assertThat(reason(lease(file, 1, false))).isEqualTo("it is being registered");
    mapped.awaitKept();
    try (KeptFiles.Lease lease = lease(file, 1, false).orElseThrow(AssertionError::new)) {
      assertThat(pinned()).isEqualTo(BYTES);
      assertThat(lease.file(file.file()).identity()).isEqualTo(file.identity());
    }
  }

  @Test
  void aSecondUserWaitsForTheRegistrationThatIsUnderWay() throws InterruptedException {
    SourceFile file = file(1);
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    try (KeptFiles slow =
        mapped(
            calls,
            (location, policy) -> {
              begun.countDown();
              await(goOn);
              return stores.open(location, policy);
            })) {
      Map<SourceFile, Long> all = Map.of(file, (long) BYTES);
      assertThat(reason(slow.lease(context, all, false))).isEqualTo("it is being registered");
      await(begun);
      List<Availability<KeptFiles.Lease>> leases = new ArrayList<>();
      Thread second = Thread.ofPlatform().start(() -> leases.add(slow.lease(context, all, true)));
      Latches.awaitThat(() -> second.getState() == Thread.State.WAITING);
      goOn.countDown();
      second.join();
      leases.getFirst().orElseThrow(AssertionError::new).close();
      assertThat(pinned()).isEqualTo(BYTES);
    }
  }

  @Test
  void theLeastRecentlyUsedGoesWhenOthersNeedTheRoom() {
    availableBytes = 2 * (2 * BYTES + 4096);
    SourceFile first = file(1);
    SourceFile second = file(2);
    SourceFile third = file(3);
    leaseNow(first).close();
    leaseNow(second).close();
    leaseNow(first).close();
    leaseNow(third).close();
    assertThat(pinned()).isEqualTo(2 * BYTES);
    KeptFiles.Lease used = lease(first, 1, false).orElseThrow(AssertionError::new);
    KeptFiles.Lease alsoUsed = lease(third, 1, false).orElseThrow(AssertionError::new);
    assertThat(reason(lease(second, BYTES, true)))
        .isEqualTo(
            "not kept: it has 3145728 bytes; 4096 may be kept now, which leaves half of the"
                + " available memory free");
    used.close();
    alsoUsed.close();
    assertThat(mapped.lease(context, Map.of(second, 1L), true).toOptional())
        .hasValueSatisfying(KeptFiles.Lease::close);
  }

  @Test
  void allSessionsTogetherLeaveHalfOfTheMemory() {
    availableBytes = 2 * (BYTES + 4096);
    SourceFile first = file(1);
    SourceFile second = file(2);
    try (KeptFiles other = mapped(calls, stores::open)) {
      leaseNow(first).close();
      assertThat(registered.bytes()).isEqualTo(BYTES);
      assertThat(reason(other.lease(context, Map.of(second, 1L), true)))
          .isEqualTo(
              "not kept: it has 3145728 bytes; 4096 may be kept now, which leaves half of the"
                  + " available memory free");
      mapped.freeIdle();
      assertThat(registered.bytes()).isZero();
      other.lease(context, Map.of(second, 1L), true).orElseThrow(AssertionError::new).close();
      assertThat(registered.bytes()).isEqualTo(BYTES);
    }
    assertThat(registered.bytes()).isZero();
  }

  @Test
  void aFileThatCannotBeRegisteredDoesNotCount() {
    SourceFile file = file(1);
    availableBytes = BYTES;
    assertThat(reason(lease(file, 1, true))).startsWith("not kept: it has");
    assertThat(registered.bytes()).isZero();
  }

  /// Deregistering takes the driver 6 ms for each gigabyte.
  @Test
  void aFileThatIsBeingGivenUpHoldsUpNoBatch() throws InterruptedException {
    CountDownLatch closes = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    FaultyFileCalls slow = new FaultyFileCalls(calls);
    Stores opened = new Stores(slow, List.of());
    try (KeptFiles each = mapped(slow, opened::open)) {
      SourceFile first = file(1);
      SourceFile second = file(2);
      each.lease(context, Map.of(first, 1L), true).orElseThrow(AssertionError::new).close();
      slow.at(
          FaultyFileCalls.Function.CLOSE,
          slow.count(FaultyFileCalls.Function.CLOSE) + 1,
          new FaultyFileCalls.After(() -> {
            closes.countDown();
            await(goOn);
          }));
      Thread gives = Thread.ofPlatform().start(each::freeIdle);
      await(closes);
      each.lease(context, Map.of(second, 1L), true).orElseThrow(AssertionError::new).close();
      // Who asks for the memory waits until the other thread has freed it.
      Thread waits = Thread.ofPlatform().start(each::freeIdle);
      Latches.awaitThat(() -> waits.getState() == Thread.State.WAITING);
      goOn.countDown();
      gives.join();
      waits.join();
    } finally {
      opened.close();
    }
  }

  @Test
  void registeredFilesGoWhenMemoryBecomesScarce() {
    SourceFile idle = file(1);
    SourceFile used = file(2);
    SourceFile other = file(3);
    leaseNow(idle).close();
    try (KeptFiles.Lease _ = leaseNow(used)) {
      availableBytes = BYTES;
      // A thread checks the available memory four times a second.
      Latches.awaitThat(() -> {
        assertThat(lease(other, 1, false).toOptional()).isEmpty();
        return pinned() <= BYTES;
      });
      assertThat(pinned()).isEqualTo(BYTES);
    }
    mapped.freeIdle();
    assertThat(pinned()).isZero();
  }

  @Test
  void aRegisteredFileThatBatchesUseAllTheTimeGoesToo() {
    SourceFile used = file(1);
    try (KeptFiles.Lease _ = leaseNow(used)) {
      availableBytes = BYTES;
      Latches.awaitThat(() -> {
        Optional<KeptFiles.Lease> next = lease(used, 1, false).toOptional();
        next.ifPresent(KeptFiles.Lease::close);
        return next.isEmpty();
      });
      assertThat(reason(lease(used, 1, false)))
          .isEqualTo("it is being given up: the machine needs the memory");
      assertThat(pinned()).isEqualTo(BYTES);
    }
    assertThat(pinned()).isZero();
  }

  @Test
  void aFileThatIsChangedInPlaceIsAnError() throws IOException {
    SourceFile file = file(1);
    try (KeptFiles.Lease lease = leaseNow(file)) {
      lease.requireUnchanged();
      Files.write(file.file().path(), new byte[1], StandardOpenOption.APPEND);
      assertThatThrownBy(lease::requireUnchanged)
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("changed-meanwhile: it was modified while it was read");
    }
  }

  @Test
  void anotherFileOfTheNameIsRegisteredAnew() throws IOException {
    SourceFile file = file(1);
    leaseNow(file).close();
    Path other = TestFiles.write(folder.resolve("other"), 9, BYTES);
    Files.move(other, file.file().path(), StandardCopyOption.REPLACE_EXISTING);
    SourceFile now = open(file.file());
    try (KeptFiles.Lease lease = leaseNow(now)) {
      assertThat(lease.file(now.file()).identity()).isEqualTo(now.identity());
      assertThat(reason(lease(file, 1, true))).endsWith("was replaced while it was read");
    }
    assertThat(pinned()).isEqualTo(BYTES);
  }

  /// Rows of random lengths and alignments: each byte is compared, and no byte beside a row may
  /// change.
  @Test
  void theKernelFetchesAnyRowToAnyPlace() {
    SourceFile first = file(1);
    SourceFile second = file(2);
    byte[][] bytes = {TestFiles.bytes(1, BYTES), TestFiles.bytes(2, BYTES)};
    Random random = new Random(5);
    Gathers.Builder rows = new Gathers.Builder(0);
    byte[] expected = new byte[2 * BYTES];
    int to = 0;
    while (true) {
      int length =
          1
              + random.nextInt(
                  switch (random.nextInt(3)) {
                    case 0 -> 40;
                    case 1 -> 5000;
                    default -> 200_000;
                  });
      to += random.nextInt(20);
      if (to + length > expected.length) {
        break;
      }
      int which = random.nextInt(2);
      int from = random.nextInt(10) == 0 ? BYTES - length : random.nextInt(BYTES - length);
      SourceFile file = which == 0 ? first : second;
      rows.add(file.file(), from, length, to);
      System.arraycopy(bytes[which], from, expected, to, length);
      to += length;
    }
    KeptFiles.Lease lease =
        mapped.lease(context, Map.of(first, 1L, second, 1L), true).orElseThrow(AssertionError::new);
    DeviceSlab slab = DeviceSlab.allocate(context, expected.length);
    Gathers gathers = rows.build();
    try (Gathering gathering = new Gathering(mapped, lease, gathers, List.of())) {
      PinnedSlab table = PinnedSlab.allocate(context, gathering.tableBytes());
      try (var _ = context.enter()) {
        context.driver().fill(slab.address(), (byte) 0, expected.length, CudaDriver.Stream.DEFAULT);
        gathering.prepare(table.segment(), slab.address());
        gathering.launch(context, table.address(), CudaDriver.Stream.DEFAULT);
        context.driver().synchronize(CudaDriver.Stream.DEFAULT);
        gathering.requireUnchanged();
      } finally {
        table.release();
      }
      assertThat(TestFiles.bytes(new Region(slab, 0, expected.length)))
          .as("%d rows", gathers.count())
          .isEqualTo(expected);
    } finally {
      slab.release();
    }
  }

  /// The normalising kernel fetches its own samples, and the gather kernel fetches the other rows.
  @Test
  void samplesThatAreNormalisedAreLeftToTheirKernel() {
    SourceFile file = file(1);
    Normalization what =
        new Normalization(DType.U8, DType.F32, 30, false, List.of(1f), List.of(0f));
    Gathers.Builder gathers = new Gathers.Builder(0);
    gathers.add(file.file(), 5, 7, 0);
    gathers.add(file.file(), 100, 60, 64);
    gathers.add(file.file(), 1001, 30, 124);
    gathers.add(file.file(), 2000, 9, 200);
    NormalizedRows dense = new NormalizedRows(what, 64, 30, 256, 3);
    NormalizedRows apart = new NormalizedRows(what, 64, 31, 256, 3);
    NormalizedRows cut = new NormalizedRows(what, 0, 30, 256, 3);
    try (Gathering gathering =
        new Gathering(mapped, leaseNow(file), gathers.build(), List.of(cut, dense, apart))) {
      assertThat(gathering.fused(dense)).contains(new Gathering.Fused(dense, 1, 3));
      assertThat(gathering.fused(cut)).isEmpty();
      assertThat(gathering.fused(apart)).isEmpty();
      assertThat(gathering.tableBytes()).isEqualTo(2 * CopyPiece.BYTES);
      assertThat(gathering.bytes()).isEqualTo(106);
    }
  }

  @Test
  void oneRegistrationServesAllDevices() {
    Assumptions.assumeTrue(context.driver().deviceCount() > 1, "needs two devices");
    CudaContext other = CudaContext.of(new Device.Cuda(1));
    SourceFile file = file(1);
    Gathers.Builder gathers = new Gathers.Builder(0);
    gathers.add(file.file(), 1001, 5000, 3);
    KeptFiles.Lease first = leaseNow(file);
    KeptFiles.Lease second =
        mapped.lease(other, Map.of(file, 1L), false).orElseThrow(AssertionError::new);
    long registered = pinned();
    byte[] expected = Arrays.copyOfRange(TestFiles.bytes(1, BYTES), 1001, 6001);
    assertThat(fetched(context, first, gathers.build(), 5003)).endsWith(expected);
    assertThat(fetched(other, second, gathers.build(), 5003)).endsWith(expected);
    assertThat(registered).isEqualTo(BYTES);
  }

  private byte[] fetched(CudaContext each, KeptFiles.Lease lease, Gathers gathers, int slotBytes) {
    DeviceSlab slab = DeviceSlab.allocate(each, slotBytes);
    try (Gathering gathering = new Gathering(mapped, lease, gathers, List.of())) {
      PinnedSlab table = PinnedSlab.allocate(each, gathering.tableBytes());
      try (var _ = each.enter()) {
        gathering.prepare(table.segment(), slab.address());
        gathering.launch(each, table.address(), CudaDriver.Stream.DEFAULT);
        each.driver().synchronize(CudaDriver.Stream.DEFAULT);
      } finally {
        table.release();
      }
      return TestFiles.bytes(new Region(slab, 0, slotBytes));
    } finally {
      slab.release();
    }
  }
}
