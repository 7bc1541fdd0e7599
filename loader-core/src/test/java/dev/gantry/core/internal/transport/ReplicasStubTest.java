// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.TransferReport.DeviceReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Loads of the same bytes onto several devices; each byte is read once.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class ReplicasStubTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;
  private static final int LENGTH = 90 * BLOCK + 777;
  private static final int LARGE = 2 << 20;
  private static final int INVALID_VALUE = 1;
  private static final Device FIRST = new Device.Cuda(0);
  private static final Device SECOND = new Device.Cuda(1);

  @TempDir Path folder;
  private final StubControls cuda = StubControls.cuda();
  private final GantrySession gantry = GantrySession.open();
  private final TransferOptions options =
      TransferOptions.defaults()
          .withThreads(3)
          .withLimits(new PlanLimits(2L * BLOCK, BLOCK, 40L * BLOCK));

  private List<ExtentRequest> wanted;

  /// How many bytes a load onto one device reads.
  private long readBytes;

  private long deviceBytes;

  @BeforeEach
  void write() {
    cuda.clear();
    cuda.peers(true);
    Path file = TestFiles.write(folder.resolve("file"), 7, LENGTH);
    wanted = new ArrayList<>();
    Random random = new Random(5);
    for (int at = 0; at < LENGTH; ) {
      int bytes = Math.min(LENGTH - at, 1 + random.nextInt(9 * BLOCK));
      wanted.add(new ExtentRequest(new Extent(file, at, bytes), 1 << random.nextInt(9)));
      at += bytes;
    }
    wanted.add(new ExtentRequest(new Extent(file, 10, 0), 8));
    long before = cuda.count("to device bytes");
    try (Loaded one = gantry.load(wanted, FIRST, options.withTransport(Transport.STAGED))) {
      readBytes = one.report().bytes();
      deviceBytes = cuda.count("to device bytes") - before;
    }
    cuda.clear();
  }

  @AfterEach
  void close() {
    cuda.clear();
    cuda.peers(true);
    gantry.close();
  }

  private void check(List<Device> devices, List<Loaded> loaded) {
    assertThat(loaded).hasSameSizeAs(devices);
    for (int i = 0; i < devices.size(); i++) {
      for (int one = 0; one < wanted.size(); one++) {
        Extent extent = wanted.get(one).extent();
        Region region = loaded.get(i).regions().get(one);
        assertThat(region.length()).isEqualTo(extent.length());
        if (extent.length() > 0) {
          assertThat(Objects.requireNonNull(region.slab()).device()).isEqualTo(devices.get(i));
          assertThat(region.address() % wanted.get(one).alignmentBytes()).isZero();
        }
      }
      assertThat(TestFiles.firstDifference(loaded.get(i), wanted)).isEmpty();
    }
  }

  private static void closeAll(List<Loaded> loaded) {
    loaded.forEach(Loaded::close);
  }

  @Test
  void eachByteIsReadOnceCrossesOneLinkAndIsPassedOn() {
    long toDevice = cuda.count("to device bytes");
    long passed = cuda.count("peer bytes");
    List<Device> devices = List.of(FIRST, SECOND);
    List<Loaded> loaded = gantry.loadOnEach(wanted, devices, options);
    TransferReport report = loaded.getFirst().report();
    assertThat(cuda.count("to device bytes") - toDevice).isEqualTo(deviceBytes);
    assertThat(cuda.count("peer bytes") - passed).isEqualTo(deviceBytes);
    assertThat(cuda.count("peer bytes by host")).isZero();
    check(devices, loaded);
    assertThat(report.bytes(Transport.STAGED)).isEqualTo(readBytes);
    assertThat(report.devices()).extracting(DeviceReport::device).containsExactly(FIRST, SECOND);
    assertThat(report.devices())
        .allSatisfy(one -> {
          assertThat(one.fromHostBytes() + one.fromDevicesBytes()).isEqualTo(deviceBytes);
          assertThat(one.reason()).isEmpty();
        });
    closeAll(loaded);
  }

  /// Returns two adjacent allocations: the second begins where the first ends, as the driver often
  /// places them.
  private static List<Slab> neighbours(CudaContext context, List<Slab> allocated) {
    Map<Long, Slab> known = new HashMap<>();
    // Memory that other tests have freed is reused first, and need not be adjacent.
    for (int i = 0; i < 32; i++) {
      Slab slab = DeviceSlab.allocate(context, LARGE);
      allocated.add(slab);
      known.put(slab.address(), slab);
      Slab before = known.get(slab.address() - LARGE);
      Slab after = known.get(slab.address() + LARGE);
      if (before != null) {
        return List.of(before, slab);
      }
      if (after != null) {
        return List.of(slab, after);
      }
    }
    throw new AssertionError("no two allocations are neighbours");
  }

  @Test
  void whatIsPassedOnStaysWithinOneAllocation() {
    gantry.freeIdle();
    CudaContext first = CudaContext.of(new Device.Cuda(0));
    CudaContext second = CudaContext.of(new Device.Cuda(1));
    List<Slab> slabs = new ArrayList<>();
    PinnedSlab buffer = PinnedSlab.allocate(first, 2 * BLOCK);
    slabs.add(buffer);
    CopyQueue own = new CopyQueue(first);
    try {
      List<Slab> from = neighbours(first, slabs);
      List<Slab> to = neighbours(second, slabs);
      Replicas.Copies copies =
          Replicas.of(List.of(FIRST, SECOND)).new Copies(new Device.Cuda(0), _ -> own);
      copies.copy(List.of(from.getFirst(), to.getFirst()), read(LARGE - BLOCK), buffer, 0);
      copies.copy(List.of(from.getLast(), to.getLast()), read(0), buffer, BLOCK);
      long before = cuda.count("peer bytes");
      copies.queuePassed(own);
      own.drain();
      assertThat(cuda.count("peer bytes") - before).isEqualTo(2 * BLOCK);
    } finally {
      own.close();
      Slab.releaseAll(slabs);
    }
  }

  private Read read(long slabOffset) {
    return new Read(wanted.getFirst().extent().file(), 0, BLOCK, BLOCK, 0, slabOffset);
  }

  @Test
  void withoutPeersTheHostGivesEachDeviceWhatWasReadOnce() {
    cuda.peers(false);
    long toDevice = cuda.count("to device bytes");
    List<Device> devices = List.of(SECOND, FIRST);
    List<Loaded> loaded = gantry.loadOnEach(wanted, devices, options);
    assertThat(cuda.count("to device bytes") - toDevice).isEqualTo(2 * deviceBytes);
    assertThat(cuda.calls("cuMemcpyPeerAsync")).isZero();
    check(devices, loaded);
    TransferReport report = loaded.getLast().report();
    assertThat(report.bytes()).isEqualTo(readBytes);
    assertThat(report.devices())
        .containsExactly(
            new DeviceReport(
                SECOND,
                deviceBytes,
                0,
                "the driver does not let cuda:0 reach the memory of cuda:1"),
            new DeviceReport(
                FIRST,
                deviceBytes,
                0,
                "the driver does not let cuda:1 reach the memory of cuda:0"));
    closeAll(loaded);
  }

  @Test
  void theHostMayBeOneOfThem() {
    List<Device> devices = List.of(Device.HOST, FIRST, SECOND);
    List<Loaded> loaded = gantry.loadOnEach(wanted, devices, options);
    check(devices, loaded);
    assertThat(loaded.getFirst().report().bytes()).isEqualTo(readBytes);
    assertThat(loaded.getFirst().report().devices().getFirst())
        .isEqualTo(new DeviceReport(Device.HOST, deviceBytes, 0, ""));
    closeAll(loaded);
  }

  @Test
  void oneDeviceIsLoadedAsEver() {
    for (Device device : List.of(Device.HOST, SECOND)) {
      List<Loaded> loaded = gantry.loadOnEach(wanted, List.of(device), options);
      check(List.of(device), loaded);
      assertThat(loaded.getFirst().report().devices()).isEmpty();
      closeAll(loaded);
    }
  }

  @Test
  void aDeviceThatMayNotEnableItsPeerGetsTheBytesFromTheHost() {
    cuda.fail("cuCtxEnablePeerAccess", 1, 217, 0);
    List<Loaded> loaded = gantry.loadOnEach(wanted, List.of(FIRST, SECOND), options);
    check(List.of(FIRST, SECOND), loaded);
    assertThat(loaded.getFirst().report().devices().getLast().reason())
        .contains("cuCtxEnablePeerAccess of cuda:1 by cuda:0", "PEER_ACCESS_UNSUPPORTED");
    closeAll(loaded);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cuMemcpyPeerAsync",
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoDAsync",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuStreamSynchronize",
        "cuMemAlloc",
        "cuStreamCreate",
        "cuMemHostRegister"
      })
  void aFailureLeavesNothingOnAnyDevice(String function) {
    gantry.freeIdle();
    for (boolean peers : new boolean[] {true, false}) {
      cuda.peers(peers);
      for (int nth : new int[] {1, 2, 5}) {
        cuda.clear();
        cuda.fail(function, nth, INVALID_VALUE, 0);
        try {
          closeAll(gantry.loadOnEach(wanted, List.of(FIRST, SECOND), options));
          assertThat(cuda.calls(function)).isLessThan(nth);
        } catch (TransferException failed) {
          assertThat(failed).hasMessageContaining(function);
        }
        cuda.clear();
        gantry.freeIdle();
      }
    }
    List<Loaded> loaded = gantry.loadOnEach(wanted, List.of(FIRST, SECOND), options);
    check(List.of(FIRST, SECOND), loaded);
    closeAll(loaded);
  }

  /// The copies that a load makes within its slabs wait for no other work of the device.
  @Test
  void extentsMoveToTheirAlignmentBesideOtherWork() {
    CudaContext context = CudaContext.of(new Device.Cuda(1));
    DeviceSlab other = DeviceSlab.allocate(context, BLOCK);
    try (CopyQueue busy = new CopyQueue(context)) {
      busy.copyOnDevice(other.address(), other.address() + BLOCK / 2, BLOCK / 2);
      List<Loaded> loaded = gantry.loadOnEach(wanted, List.of(FIRST, SECOND), options);
      assertThat(cuda.calls("cuMemcpyDtoDAsync")).isGreaterThan(2);
      assertThat(cuda.count("pending operations")).isEqualTo(1);
      busy.drain();
      check(List.of(FIRST, SECOND), loaded);
      closeAll(loaded);
    }
    other.release();
  }

  @Test
  void aRefusedCopySaysWhereItsBytesLie() {
    cuda.fail("cuMemcpyDtoDAsync", 1, INVALID_VALUE, 0);
    assertThatThrownBy(() -> gantry.loadOnEach(wanted, List.of(SECOND, FIRST), options))
        .isInstanceOf(TransferException.class)
        .message()
        .matches(
            "cuMemcpyDtoDAsync failed: \\d+ bytes from address 0x\\w+ \\(cuda:1, \\d+ bytes at"
                + " address 0x\\w+\\) to address 0x\\w+ \\(cuda:1, .*CUDA_ERROR_INVALID_VALUE.*");
  }

  @Test
  void aCancelledLoadLeavesNothing() {
    Cancellation cancellation = new Cancellation();
    TransferOptions cancelled =
        options.withCancellation(cancellation).withProgress((_, _) -> cancellation.cancel());
    cancellation.cancel();
    assertThatThrownBy(() -> gantry.loadOnEach(wanted, List.of(FIRST, SECOND), cancelled))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cancelled");
  }

  @Test
  void theDevicesMustDifferAndTheTransportMustServeThem() {
    assertThatThrownBy(() -> gantry.loadOnEach(wanted, List.of(FIRST, FIRST), options))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("[cuda:0, cuda:0]");
    assertThatThrownBy(() -> gantry.loadOnEach(wanted, List.of(), options))
        .isInstanceOf(MisuseException.class);
    TransferOptions gds = options.withTransport(Transport.GDS);
    assertThatThrownBy(() -> gantry.loadOnEach(wanted, List.of(FIRST, Device.HOST), gds))
        .isInstanceOf(DeviceUnavailableException.class)
        .hasMessageContaining("some of the bytes go to host memory");
  }

  @Test
  void severalLoadsAtOnceShareTheBuffers() throws InterruptedException {
    List<Throwable> failures = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      List<Device> devices = i % 2 == 0 ? List.of(FIRST, SECOND) : List.of(SECOND, FIRST);
      threads.add(
          Thread.ofPlatform()
              .start(() -> {
                try {
                  List<Loaded> loaded = gantry.loadOnEach(wanted, devices, options);
                  check(devices, loaded);
                  closeAll(loaded);
                } catch (Throwable e) {
                  synchronized (failures) {
                    failures.add(e);
                  }
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    CudaContext.freeIdle();
  }
}
