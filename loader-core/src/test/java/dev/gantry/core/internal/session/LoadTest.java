// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Loads into memory of the CPU.
@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class LoadTest {
  private static final int LENGTH = 700_001;

  @TempDir Path folder;
  private final GantrySession gantry = GantrySession.open();
  private Path first;
  private Path second;

  @BeforeEach
  void writeFiles() {
    first = TestFiles.write(folder.resolve("first"), 1, LENGTH);
    second = TestFiles.write(folder.resolve("second"), 2, LENGTH);
  }

  @AfterEach
  void close() {
    gantry.close();
  }

  private static TransferOptions small() {
    return TransferOptions.defaults().withLimits(new PlanLimits(3 * 4096, 8192, 16 * 4096));
  }

  private List<ExtentRequest> random(long seed, int count) {
    Random random = new Random(seed);
    List<ExtentRequest> wanted = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int length = random.nextInt(random.nextBoolean() ? 200 : 70_000);
      int offset = random.nextInt(LENGTH - length + 1);
      Path file = random.nextBoolean() ? first : second;
      wanted.add(new ExtentRequest(new Extent(file, offset, length), 1 << random.nextInt(9)));
    }
    return wanted;
  }

  @ParameterizedTest
  @EnumSource
  void bytesAreRightWhateverIsWantedOfTheFiles(CachePolicy policy) {
    for (int threads = 1; threads <= 8; threads++) {
      List<ExtentRequest> wanted = random(threads, 30);
      TransferOptions options = small().withCachePolicy(policy).withThreads(threads);
      try (Loaded loaded = gantry.load(wanted, Device.HOST, options)) {
        assertThat(TestFiles.firstDifference(loaded, wanted))
            .as("seed and threads %s", threads)
            .isEmpty();
        assertThat(loaded.report().bytes()).isEqualTo(loaded.report().bytes(Transport.HOST));
      }
    }
  }

  @Test
  void wholeFilesWithTheDefaults() {
    List<ExtentRequest> wanted =
        List.of(
            new ExtentRequest(new Extent(first, 0, LENGTH), 8),
            new ExtentRequest(new Extent(second, 0, LENGTH), 8));
    try (Loaded loaded = gantry.load(wanted, Device.HOST, TransferOptions.defaults())) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      assertThat(loaded.report().reads()).isEqualTo(2);
      assertThat(loaded.report().files())
          .extracting("file")
          .containsExactly(Location.of(first), Location.of(second));
    }
  }

  @Test
  void aSelectionReadsOnlyItsBlocks() {
    List<ExtentRequest> wanted =
        List.of(
            new ExtentRequest(new Extent(first, 100, 1000), 4),
            new ExtentRequest(new Extent(first, 400_000, 4), 4),
            new ExtentRequest(new Extent(second, LENGTH - 1, 1), 1));
    try (Loaded loaded = gantry.load(wanted, Device.HOST, small())) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      assertThat(loaded.report().bytes()).isEqualTo(3 * 4096);
      assertThat(loaded.report().reads()).isEqualTo(3);
    }
  }

  @Test
  void nothingIsNothing() {
    try (Loaded loaded =
        gantry.load(
            List.of(new ExtentRequest(new Extent(folder.resolve("missing"), 5, 0), 8)),
            Device.HOST,
            small())) {
      assertThat(loaded.regions()).containsExactly(new Region(null, 0, 0));
      assertThat(loaded.regions().getFirst().address()).isZero();
      assertThat(loaded.report().bytes()).isZero();
      assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
    }
  }

  /// A relocated extent may empty the slab that it was read into; the load frees that slab at
  /// once.
  @Test
  void aSlabFromWhichEverythingMovedIsNotKept() {
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(first, 4097, 40_000), 8));
    try (Loaded loaded = gantry.load(wanted, Device.HOST, TransferOptions.defaults())) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      assertThat(LiveResources.snapshot().slabs()).isEqualTo(1);
      assertThat(LiveResources.snapshot().hostBytes()).isEqualTo(40_960);
    }
  }

  @Test
  void whoRetainedARegionKeepsItPastLoadAndSession() {
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(first, 10, 50), 2));
    Loaded loaded = gantry.load(wanted, Device.HOST, small());
    Region region = loaded.regions().getFirst();
    Runnable release = region.retain();
    loaded.close();
    loaded.close();
    gantry.close();
    assertThat(TestFiles.bytes(region)).isEqualTo(TestFiles.expected(wanted.getFirst().extent()));
    release.run();
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> TestFiles.bytes(region));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(region::retain);
  }

  @Test
  void aClosedSessionSaysSo() {
    gantry.close();
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(first, 0, 1), 1));
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> gantry.load(wanted, Device.HOST, small()))
        .withMessage("this session is closed");
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> gantry.map(wanted))
        .withMessage("this session is closed");
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> gantry.fill(List.of(), Device.HOST, small()))
        .withMessage("this session is closed");
  }

  @Test
  void aSessionThatClosesWaitsForItsLoads() throws Exception {
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(first, 0, LENGTH), 1));
    Thread closer = new Thread(gantry::close);
    Set<Thread.State> seen = EnumSet.noneOf(Thread.State.class);
    TransferOptions options =
        small()
            .withProgress((_, _) -> {
              assertThatExceptionOfType(MisuseException.class).isThrownBy(gantry::close);
              if (seen.isEmpty()) {
                closer.start();
                Latches.awaitThat(() -> closer.getState() != Thread.State.RUNNABLE);
                seen.add(closer.getState());
              }
            });
    try (Loaded loaded = gantry.load(wanted, Device.HOST, options)) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
    }
    closer.join();
    assertThat(seen).containsExactly(Thread.State.WAITING);
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> gantry.load(wanted, Device.HOST, small()));
  }

  @ParameterizedTest
  @EnumSource(names = {"GDS", "COMPAT", "STAGED"})
  void aPathThatCannotEndOnTheHostIsRefused(Transport path) {
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(first, 0, 1), 1));
    assertThatExceptionOfType(DeviceUnavailableException.class)
        .isThrownBy(() -> gantry.load(wanted, Device.HOST, small().withTransport(path)))
        .withMessageContaining(path.toString());
  }

  @Test
  void twoThreadsLoadAtOnce() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Callable<String>> loads = new ArrayList<>();
      for (int i = 0; i < 40; i++) {
        List<ExtentRequest> wanted = random(i, 10);
        CachePolicy policy = i % 2 == 0 ? CachePolicy.DIRECT : CachePolicy.BY_RESIDENCY;
        loads.add(() -> {
          TransferOptions options = small().withCachePolicy(policy).withThreads(3);
          try (Loaded loaded = gantry.load(wanted, Device.HOST, options)) {
            return TestFiles.firstDifference(loaded, wanted);
          }
        });
      }
      for (Future<String> load : threads.invokeAll(loads)) {
        assertThat(load.get()).isEmpty();
      }
    }
  }

  /// A store whose client takes an interruption for a fault, as HTTP clients do.
  private record Interrupted(Cancellation cancellation) implements Store {
    @Override
    public Set<String> schemes() {
      return Set.of("interrupted");
    }

    @Override
    public StoredFile open(Location file, CachePolicy policy) {
      cancellation.cancel();
      assertThat(Thread.currentThread().isInterrupted()).isTrue();
      throw new IllegalStateException("the request was interrupted");
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aCancellationEndsTheOpeningOfARemoteFileAndLeavesTheThreadAsItWas(boolean interrupted) {
    Cancellation cancellation = new Cancellation();
    Extent extent = new Extent(Location.of("interrupted://there/file"), 0, 1);
    try (GantrySession session =
        GantrySession.open(FileCalls.ofPlatform(), List.of(new Interrupted(cancellation)))) {
      TransferOptions options = small().withCancellation(cancellation);
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
      assertThatExceptionOfType(TransferException.class)
          .isThrownBy(
              () -> session.load(List.of(new ExtentRequest(extent, 1)), Device.HOST, options))
          .satisfies(failed -> assertThat(failed.failure()).isEqualTo(new Failure.Cancelled()));
      assertThat(Thread.interrupted()).isEqualTo(interrupted);
    }
  }

  @Test
  void aSessionClosesItsStores() {
    AtomicInteger closes = new AtomicInteger();
    Store store =
        new Store() {
          @Override
          public Set<String> schemes() {
            return Set.of("closed");
          }

          @Override
          public StoredFile open(Location file, CachePolicy policy) {
            throw new AssertionError("nothing is opened");
          }

          @Override
          public void close() {
            closes.incrementAndGet();
          }
        };
    GantrySession.open(FileCalls.ofPlatform(), List.of(store)).close();
    assertThat(closes).hasValue(1);
  }

  /// A store with one file that cannot be opened, and one whose opening ends by an interruption.
  private record Hanging() implements Store {
    @Override
    public Set<String> schemes() {
      return Set.of("hanging");
    }

    @Override
    public StoredFile open(Location file, CachePolicy policy) {
      if (file.fileName().equals("fails")) {
        throw new TransferException("open", file.toString(), new Failure.Remote(404, "Not Found"));
      }
      try {
        new CountDownLatch(1).await();
      } catch (InterruptedException _) {
        Thread.currentThread().interrupt();
      }
      throw new IllegalStateException("the request was interrupted");
    }
  }

  @Test
  @Timeout(60)
  void aFileThatCannotBeOpenedEndsTheOpeningOfOthers() {
    List<ExtentRequest> wanted =
        Stream.of("hangs", "fails")
            .map(name -> new Extent(Location.of("hanging://there/" + name), 0, 1))
            .map(extent -> new ExtentRequest(extent, 1))
            .toList();
    try (GantrySession session =
        GantrySession.open(FileCalls.ofPlatform(), List.of(new Hanging()))) {
      assertThatExceptionOfType(TransferException.class)
          .isThrownBy(() -> session.load(wanted, Device.HOST, small()))
          .withMessageContaining("Not Found");
    }
  }
}
