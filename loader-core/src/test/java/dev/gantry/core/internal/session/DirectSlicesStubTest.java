// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.TransferReport.DeviceReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.StridedRange;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Slices and replicas on two GPUs past the CPU: each byte is read once, into the memory of one of
/// the GPUs that want it.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class DirectSlicesStubTest {
  /// Half of the file fits the BAR window of the stub's second GPU, which can register 512 KiB.
  private static final int LENGTH = 512 << 10;

  private static final int ROW = 128 << 10;
  private static final int INTERNAL_ERROR = 5030;
  private static final Device FIRST = new Device.Cuda(0);
  private static final Device SECOND = new Device.Cuda(1);

  @TempDir Path folder;
  private final StubControls cuFile = StubControls.cuFile();
  private final StubControls cuda = StubControls.cuda();
  private final GantrySession gantry = GantrySession.open();
  private final byte[] bytes = TestFiles.bytes(3, LENGTH);
  private Location file;
  private long readBefore;
  private long copiedBefore;
  private long passedBefore;

  @BeforeEach
  void directIoIsThere() {
    cuFile.clear();
    cuFile.direct(true);
    cuda.clear();
    cuda.peers(true);
    file = Location.of(TestFiles.write(folder.resolve("file"), 3, LENGTH));
    readBefore = cuFile.count("bytes read");
    copiedBefore = cuda.count("to device bytes");
    passedBefore = cuda.count("peer bytes");
  }

  @AfterEach
  void nothingIsLeft() {
    gantry.close();
    cuFile.clear();
    cuFile.direct(false);
    cuda.clear();
    cuda.peers(true);
    assertThat(cuFile.count("buffers")).isZero();
    assertThat(cuFile.count("handles")).isZero();
  }

  private static TransferOptions direct() {
    return TransferOptions.defaults().withCachePolicy(CachePolicy.DIRECT).withThreads(2);
  }

  private long read() {
    return cuFile.count("bytes read") - readBefore;
  }

  private long copiedByTheHost() {
    return cuda.count("to device bytes") - copiedBefore;
  }

  private long passedOn() {
    return cuda.count("peer bytes") - passedBefore;
  }

  /// Returns one rank's half of each row of `row` bytes.
  private Sliced columns(int rank, int row) {
    int half = row / 2;
    int rows = LENGTH / row;
    Copy2D slice = new Copy2D((long) rank * half, row, 0, half, half, rows);
    return new Sliced(List.of(new StridedRange(file, slice)), (long) half * rows);
  }

  private byte[] expected(int rank, int row) {
    byte[] part = new byte[LENGTH / 2];
    for (int i = 0; i < LENGTH / row; i++) {
      System.arraycopy(bytes, i * row + rank * row / 2, part, i * row / 2, row / 2);
    }
    return part;
  }

  private TransferReport slices(int row, TransferOptions options, List<Device> devices) {
    List<List<Sliced>> parts = new ArrayList<>();
    for (int rank = 0; rank < devices.size(); rank++) {
      parts.add(List.of(columns(rank, row)));
    }
    List<Loaded> loaded = gantry.loadSlices(devices, parts, options);
    for (int rank = 0; rank < devices.size(); rank++) {
      assertThat(TestFiles.bytes(loaded.get(rank).regions().getFirst()))
          .isEqualTo(expected(rank, row));
    }
    TransferReport report = loaded.getFirst().report();
    loaded.forEach(Loaded::close);
    return report;
  }

  @ParameterizedTest
  @ValueSource(ints = {LENGTH, ROW})
  void eachRanksBytesComeToItsOwnGpuOnce(int row) {
    TransferReport report = slices(row, direct(), List.of(FIRST, SECOND));
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(report.files().getFirst().reason()).isEmpty();
    assertThat(read()).isEqualTo(LENGTH);
    assertThat(copiedByTheHost()).isZero();
    assertThat(LiveResources.snapshot().registrations()).isZero();
  }

  @Test
  void aRankAloneReadsItsOwnBytesOnly() {
    TransferReport report = slices(ROW, direct(), List.of(FIRST));
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(read()).isEqualTo(LENGTH / 2);
  }

  @Test
  void rowsThatAreTooShortForADiskAreStaged() {
    TransferReport report = slices(ROW / 2, direct(), List.of(FIRST, SECOND));
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(read()).isZero();
  }

  @ParameterizedTest
  @EnumSource(names = {"GDS", "COMPAT"})
  void shortRowsGoByCuFileIfItIsAskedFor(Transport transport) {
    TransferReport report =
        slices(ROW / 2, direct().withTransport(transport), List.of(FIRST, SECOND));
    assertThat(report.bytesByTransport()).containsOnlyKeys(transport);
    assertThat(read()).isEqualTo(LENGTH);
  }

  /// Loads the first `common` bytes of the file onto both ranks, and the `more` bytes behind them
  /// onto the second rank only.
  private TransferReport shared(int common, int more, TransferOptions options) {
    List<Sliced> first = List.of(beginning(common));
    List<Sliced> second = List.of(beginning(common + more));
    List<Loaded> loaded =
        gantry.loadSlices(List.of(FIRST, SECOND), List.of(first, second), options);
    assertThat(TestFiles.bytes(loaded.getFirst().regions().getFirst()))
        .isEqualTo(Arrays.copyOf(bytes, common));
    assertThat(TestFiles.bytes(loaded.getLast().regions().getFirst()))
        .isEqualTo(Arrays.copyOf(bytes, common + more));
    TransferReport report = loaded.getFirst().report();
    loaded.forEach(Loaded::close);
    return report;
  }

  private Sliced beginning(int length) {
    return new Sliced(List.of(new StridedRange(file, Copy2D.ofRow(0, 0, length))), length);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 4096, 777})
  void whatSeveralRanksWantIsReadOnceAndPassedOn(int more) {
    TransferReport report = shared(ROW, more, direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(read()).isEqualTo(ROW + more);
    assertThat(copiedByTheHost()).isZero();
    assertThat(passedOn()).isEqualTo(ROW);
    assertThat(report.devices())
        .containsExactly(
            new DeviceReport(FIRST, ROW, 0, ""), new DeviceReport(SECOND, more, ROW, ""));
  }

  @Test
  void whatSeveralRanksWantIsStagedIfTheyDoNotReachOneAnother() {
    cuda.peers(false);
    TransferReport report = shared(ROW, 777, direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(copiedByTheHost()).isEqualTo(2L * ROW + 777);
    assertThat(passedOn()).isZero();
  }

  @Test
  void whatSeveralRanksWantIsReadForEachIfGdsIsAskedForAndTheyDoNotReachOneAnother() {
    cuda.peers(false);
    TransferReport report = shared(ROW, 777, direct().withTransport(Transport.GDS));
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(read()).isEqualTo(2L * ROW + 777);
    assertThat(passedOn()).isZero();
  }

  @Test
  void aReadThatFailsBeforeBytesArePassedOnIsStaged() {
    cuFile.fail("cuFileRead", 1, -INTERNAL_ERROR, 0);
    TransferReport report = shared(ROW, 777, direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(report.devices()).allMatch(device -> device.fromDevicesBytes() == 0);
  }

  @Test
  void aCopyOfWhatSeveralRanksWantThatFailsFailsNothingElse() {
    cuda.fail("cuMemcpyPeerAsync", 1, 719, 0);
    TransferReport report = shared(ROW, 777, direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(report.files().getFirst().reason()).contains("cuMemcpyPeerAsync");
  }

  @Test
  void whatOneRankWantsTwiceIsReadOnce() {
    List<Sliced> twice = List.of(beginning(ROW), beginning(ROW + 777));
    List<Loaded> loaded =
        gantry.loadSlices(List.of(FIRST, SECOND), List.of(twice, List.of()), direct());
    for (int i = 0; i < 2; i++) {
      assertThat(TestFiles.bytes(loaded.getFirst().regions().get(i)))
          .isEqualTo(Arrays.copyOf(bytes, ROW + i * 777));
    }
    assertThat(loaded.getFirst().report().bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(read()).isEqualTo(ROW + 777);
    assertThat(passedOn()).isZero();
    loaded.forEach(Loaded::close);
  }

  @Test
  void whatTheHostGetsIsStaged() {
    TransferReport report = slices(ROW, direct(), List.of(FIRST, Device.HOST));
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
  }

  @Test
  void bytesInThePageCacheAreStaged() {
    TransferReport report =
        slices(
            ROW,
            TransferOptions.defaults().withCachePolicy(CachePolicy.BUFFERED),
            List.of(FIRST, SECOND));
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
  }

  @Test
  void aFileThatCuFileFailsInMidWayIsStagedFromThereOn() {
    cuFile.fail("cuFileRead", 3, -INTERNAL_ERROR, 0);
    TransferReport report = slices(ROW, direct().withThreads(1), List.of(FIRST, SECOND));
    assertThat(report.bytesByTransport()).containsKey(Transport.STAGED);
    assertThat(report.files().getFirst().reason()).contains("CU_FILE_INTERNAL_ERROR");
  }

  private TransferReport replicas(TransferOptions options) {
    List<ExtentRequest> whole = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 8));
    List<Loaded> loaded = gantry.loadOnEach(whole, List.of(FIRST, SECOND), options);
    for (Loaded one : loaded) {
      assertThat(Arrays.equals(TestFiles.bytes(one.regions().getFirst()), bytes)).isTrue();
    }
    TransferReport report = loaded.getFirst().report();
    loaded.forEach(Loaded::close);
    return report;
  }

  @Test
  void replicasAreReadOnceAndPassedOnFromGpuToGpu() {
    TransferReport report = replicas(direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(read()).isEqualTo(LENGTH);
    assertThat(copiedByTheHost()).isZero();
    assertThat(passedOn()).isEqualTo(LENGTH);
    assertThat(report.devices())
        .allSatisfy(device ->
            assertThat(device.fromHostBytes() + device.fromDevicesBytes()).isEqualTo(LENGTH));
  }

  @Test
  void replicasThatCannotBePassedOnAreStaged() {
    cuda.peers(false);
    TransferReport report = replicas(direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(read()).isZero();
    assertThatThrownBy(() -> replicas(direct().withTransport(Transport.GDS)))
        .isInstanceOf(DeviceUnavailableException.class)
        .hasMessageContaining("does not let cuda:0 reach the memory of cuda:1");
  }

  @Test
  void aCopyToAnotherGpuThatFailsFailsTheLoad() {
    cuda.fail("cuMemcpyPeerAsync", 1, 719, 0);
    assertThatThrownBy(() -> replicas(direct())).hasMessageContaining("cuMemcpyPeerAsync");
  }
}
