// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFile.Flag;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Answers;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Loads past the CPU, on a libcufile that supports them, and the loads of files that it refuses.
@Tag("gpu-stub")
class DirectTransportStubTest extends TransportContract {
  private static final int INTERNAL_ERROR = 5030;
  private static final int PINNING_FAILED = 5036;

  private final StubControls cuFile = StubControls.cuFile();

  @BeforeEach
  void directIoIsThere() {
    cuFile.clear();
    cuFile.direct(true);
  }

  @AfterEach
  void nothingIsLeft() {
    cuFile.clear();
    cuFile.direct(false);
    cuFile.serves(true);
    gantry.close();
    assertThat(cuFile.count("handles")).isZero();
    assertThat(cuFile.count("opened")).isZero();
  }

  private List<ExtentRequest> wholeFile() {
    return List.of(wanted(first, 0, LENGTH, 8));
  }

  /// Options for one reader that reads past the page cache.
  private TransferOptions direct() {
    return options().withCachePolicy(CachePolicy.DIRECT).withThreads(1);
  }

  @Test
  void aFileIsRegisteredOnceAndOnlyWhenSomethingOfItComesPastThePageCache() {
    TransferReport hot;
    try (Arena arena = Arena.ofConfined()) {
      PageCache.keep(first, 0, LENGTH, arena);
      hot = loadAndCompare(wholeFile(), options());
    }
    assertThat(hot.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(hot.files().getFirst().reason())
        .isEqualTo("no bytes had to be read past the page cache");
    assertThat(cuFile.calls("cuFileHandleRegister")).isZero();
    TransferReport cold = loadAndCompare(wholeFile(), direct());
    assertThat(cold.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(cuFile.calls("cuFileHandleRegister")).isEqualTo(1);
    assertThat(gantry.diagnose(Location.of(first), device()).prediction().transport())
        .isEqualTo(Transport.GDS);
  }

  @Test
  void aFileThatChangesBeforeCuFileReadsItIsNamed() {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE)
            .at(Function.CACHED_BYTES, 1, new After(() -> TestFiles.write(first, 99, LENGTH)))
            .from(Function.CACHED_BYTES, 1, new Answers(0));
    try (GantrySession session = GantrySession.open(calls)) {
      TransferOptions one = options().withThreads(1);
      assertThatThrownBy(() -> session.load(wholeFile(), device(), one))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("changed-meanwhile");
    }
    assertThat(cuFile.calls("cuFileRead")).isPositive();
  }

  @Test
  void aRemoteFileThatTheCacheHasAsAWholeGoesPastTheCpu() {
    byte[] bytes = TestFiles.bytes(21, LENGTH);
    try (RangeServer server = new RangeServer()) {
      gantry.cacheRemoteFiles(folder.resolve("cache"), 1 << 30);
      List<ExtentRequest> remote =
          List.of(new ExtentRequest(new Extent(server.put("first", bytes), 0, LENGTH), 8));
      assertThat(loadRemote(remote, bytes).bytesByTransport()).containsOnlyKeys(Transport.STAGED);
      TransferReport cached = loadRemote(remote, bytes);
      assertThat(cached.bytesByTransport()).containsOnlyKeys(Transport.GDS);
      assertThat(cached.files().getFirst().cached()).isTrue();
    }
  }

  /// A process was aborted when such a thread ended after the driver was closed.
  @Test
  void noThreadThatCalledLibcufileOutlivesItsDriver() {
    CountDownLatch end = new CountDownLatch(1);
    for (int i = 0; i < 3; i++) {
      loadAndCompare(wholeFile(), direct());
      // Jobs of other sessions reuse the idle threads.
      WorkerThreads.Started _ = WorkerThreads.start(1, "other-", () -> await(end));
    }
    long late = cuFile.count("late threads");
    gantry.close();
    assertThat(cuFile.count("late threads")).isEqualTo(late);
    end.countDown();
  }

  private TransferReport loadRemote(List<ExtentRequest> remote, byte[] bytes) {
    try (Loaded loaded = gantry.load(remote, device(), direct())) {
      assertThat(TestFiles.bytes(loaded.regions().getFirst())).isEqualTo(bytes);
      return loaded.report();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"GDS", "COMPAT", "STAGED"})
  void tensorsBehindAnOddHeaderLieWhereKernelsAreFast(Transport transport) {
    long posix = cuFile.count("posix");
    List<ExtentRequest> behind =
        List.of(wanted(first, 1002, 4096, 2), wanted(first, 5098, 30_000, 2));
    try (Loaded loaded = gantry.load(behind, device(), direct().withTransport(transport))) {
      assertThat(TestFiles.firstDifference(loaded, behind)).isEmpty();
      assertThat(loaded.regions()).allMatch(region -> region.address() % 16 == 0);
      assertThat(loaded.report().bytesByTransport()).containsOnlyKeys(transport);
    }
    if (transport == Transport.GDS) {
      assertThat(cuFile.count("posix")).as("bounced").isEqualTo(posix);
    }
  }

  @Test
  void aFileThatOnlyTheCpuReachesIsStaged() {
    cuFile.serves(false);
    long posix = cuFile.count("posix");
    TransferReport report = loadAndCompare(wholeFile(), direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(report.files().getFirst().reason()).contains("CU_FILE_IO_NOT_SUPPORTED");
    assertThat(cuFile.count("posix")).isEqualTo(posix);
    assertThatThrownBy(
            () -> gantry.load(wholeFile(), device(), direct().withTransport(Transport.GDS)))
        .isInstanceOf(DeviceUnavailableException.class)
        .hasMessageContaining("CU_FILE_IO_NOT_SUPPORTED");
  }

  @Test
  void whatIsCountedAsGdsPassedTheCpuByAndWhatIsCountedAsCompatDidNot() {
    long before = cuFile.count("posix");
    TransferReport gds = load(direct().withTransport(Transport.GDS));
    assertThat(gds.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(cuFile.count("posix")).isEqualTo(before);
    TransferReport compat = load(direct().withTransport(Transport.COMPAT));
    assertThat(compat.bytesByTransport()).containsOnlyKeys(Transport.COMPAT);
    assertThat(cuFile.count("posix") - before).isEqualTo(compat.reads());
    TransferReport again = loadAndCompare(wholeFile(), direct());
    assertThat(again.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(cuFile.count("posix") - before).isEqualTo(compat.reads());
  }

  private TransferReport load(TransferOptions options) {
    try (Loaded loaded = gantry.load(wholeFile(), device(), options)) {
      assertThat(TestFiles.firstDifference(loaded, wholeFile())).isEmpty();
      return loaded.report();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"GDS", "COMPAT"})
  void aFileThatIsOpenByOneWayKeepsTheOtherAway(Transport used) {
    Transport other = used == Transport.GDS ? Transport.COMPAT : Transport.GDS;
    TransferOptions asking =
        direct()
            .withTransport(used)
            .withProgress((_, _) ->
                assertThatThrownBy(
                        () -> gantry.load(wholeFile(), device(), direct().withTransport(other)))
                    .isInstanceOf(DeviceUnavailableException.class)
                    .hasMessageContaining("files open by " + used));
    assertThat(load(asking).bytesByTransport()).containsOnlyKeys(used);
    assertThat(load(direct().withTransport(other)).bytesByTransport()).containsOnlyKeys(other);
  }

  @Test
  void aFileThatCuFileRefusedKeepsNoOtherWayAway() {
    cuFile.fail("cuFileHandleRegister", 1, INTERNAL_ERROR, 0);
    assertThat(load(direct()).bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(load(direct().withTransport(Transport.COMPAT)).bytesByTransport())
        .containsOnlyKeys(Transport.COMPAT);
  }

  @Test
  void aDriverThatOthersOpenedForTheCpuAsWellIsNotBelieved() {
    CuFile others = CuFile.find().orElseThrow(AssertionError::new);
    others.openDriver();
    try {
      TransferReport report = loadAndCompare(wholeFile(), direct());
      assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
      assertThat(report.files().getFirst().reason())
          .contains("may copy through the CPU", "allow_compat_mode");
    } finally {
      others.closeDriver();
    }
  }

  @Test
  void othersInThisProcessHaveTheirOwnChoiceAfterASession() {
    CuFile parameters = CuFile.find().orElseThrow(AssertionError::new);
    assertThat(load(direct().withTransport(Transport.GDS)).reads()).isPositive();
    assertThat(parameters.get(Flag.PROPERTIES_ALLOW_COMPAT_MODE)).isFalse();
    assertThat(load(direct().withTransport(Transport.COMPAT)).reads()).isPositive();
    assertThat(parameters.get(Flag.FORCE_COMPAT_MODE)).isTrue();
    gantry.close();
    assertThat(parameters.get(Flag.PROPERTIES_ALLOW_COMPAT_MODE)).isTrue();
    assertThat(parameters.get(Flag.FORCE_COMPAT_MODE)).isFalse();
  }

  @Test
  void aLibraryThatCannotBeToldToRefuseTheCpuIsNotBelieved() {
    StubControls old = StubControls.of(NativeStubs.oldCuFile());
    old.direct(true);
    System.setProperty(CuFile.PROPERTY, NativeStubs.oldCuFile().toString());
    try {
      TransferReport report = loadAndCompare(wholeFile(), direct());
      assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
      assertThat(report.files().getFirst().reason()).contains("allow_compat_mode");
      assertThat(load(direct().withTransport(Transport.COMPAT)).bytesByTransport())
          .containsOnlyKeys(Transport.COMPAT);
    } finally {
      System.clearProperty(CuFile.PROPERTY);
      old.direct(false);
    }
  }

  @Test
  void aSessionBelievesWhatAnOpenOneWasRefused() {
    cuFile.direct(false);
    String refused = load(direct()).files().getFirst().reason();
    assertThat(refused).contains("nvidia-fs");
    long asked = cuFile.calls("cuFileDriverOpen");
    try (GantrySession other = GantrySession.open();
        Loaded loaded = other.load(wholeFile(), device(), direct())) {
      assertThat(loaded.report().files().getFirst().reason()).isEqualTo(refused);
    }
    assertThat(cuFile.calls("cuFileDriverOpen")).isEqualTo(asked);
  }

  @Test
  void weightsAreRegisteredForTheLoadOnly() {
    try (Loaded loaded = gantry.load(wholeFile(), device(), direct())) {
      assertThat(loaded.report().bytes(Transport.GDS)).isEqualTo(loaded.report().bytes());
      assertThat(loaded.report().files().getFirst().reason()).isEmpty();
      assertThat(cuFile.calls("cuFileBufRegister")).isPositive();
      assertThat(cuFile.count("buffers")).isZero();
      assertThat(LiveResources.snapshot().registrations()).isZero();
    }
  }

  @Test
  void aSlabThatCannotBeRegisteredIsReadAllTheSame() {
    cuFile.fail("cuFileBufRegister", 1, PINNING_FAILED, 0);
    TransferReport report = loadAndCompare(wholeFile(), direct());
    assertThat(report.bytes(Transport.GDS)).isEqualTo(report.bytes());
    assertThat(report.files().getFirst().transport()).isEqualTo(Transport.GDS);
    assertThat(report.files().getFirst().reason())
        .contains("cuFileBufRegister", "CU_FILE_GPU_MEMORY_PINNING_FAILED");
  }

  @Test
  void theWindowOfEachDeviceCounts() {
    try (Loaded first = gantry.load(wholeFile(), new Device.Cuda(1), direct())) {
      assertThat(first.report().files().getFirst().reason())
          .as("the stub's second GPU has a window of 1 MiB")
          .contains("cuda:1", "BAR1 window has room for 524288 more");
      assertThat(first.report().bytes(Transport.GDS)).isEqualTo(first.report().bytes());
    }
    assertThat(cuFile.calls("cuFileBufRegister")).isZero();
    loadAndCompare(wholeFile(), direct());
    assertThat(cuFile.calls("cuFileBufRegister")).isPositive();
  }

  @Test
  void aCodeWithoutItsSignIsNoCountOfBytes() {
    cuFile.fail("cuFileRead", 2, INTERNAL_ERROR, 0);
    TransferReport report = loadAndCompare(wholeFile(), direct());
    assertThat(report.bytes(Transport.GDS)).isEqualTo(options().limits().requestBytes());
    assertThat(report.files().getFirst().reason()).contains("CU_FILE_INTERNAL_ERROR");
  }

  @ParameterizedTest
  @EnumSource(names = {"GDS", "COMPAT"})
  void aCodeWithoutItsSignFailsALoadThatHasNoOtherPath(Transport asked) {
    cuFile.fail("cuFileRead", 2, INTERNAL_ERROR, 0);
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () -> gantry.load(wholeFile(), device(), direct().withTransport(asked)));
    assertThat(failure.failure()).isInstanceOf(Failure.CuFile.class);
  }
}
