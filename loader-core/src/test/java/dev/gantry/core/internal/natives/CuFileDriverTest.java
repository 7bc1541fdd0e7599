// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.internal.natives.Availability.Present;
import dev.gantry.core.internal.natives.CuFile.Storage;
import dev.gantry.core.internal.natives.CuFileParameters.Flag;
import dev.gantry.core.internal.natives.CuFileParameters.PoolSlab;
import dev.gantry.core.internal.natives.CuFileParameters.Size;
import dev.gantry.core.internal.natives.CuFileParameters.Text;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The driver's version, properties and parameters, read from structs that a C compiler laid out.
class CuFileDriverTest {
  private CuFile cuFile;
  private StubControls stub;

  @BeforeEach
  void setUp() {
    cuFile = CuFile.load(NativeStubs.cuFile().toString()).orElseThrow(AssertionError::new);
    stub = StubControls.of(NativeStubs.cuFile());
    stub.clear();
  }

  @AfterEach
  void theDriverIsClosed() {
    assertThat(stub.count("opened")).isZero();
  }

  @Test
  void knowsItsVersionBeforeTheDriverOpens() {
    assertThat(cuFile.version()).isEqualTo(new Present<>(new CuFile.Version(1, 15)));
    assertThat(CuFile.Version.of(1070)).hasToString("1.7");
  }

  @Test
  void readsTheDriversProperties() {
    assertThatThrownBy(cuFile::properties).hasMessageContaining("CU_FILE_DRIVER_NOT_INITIALIZED");
    cuFile.openDriver();
    CuFileDriverProperties properties = CuFileDriverProperties.of(cuFile);
    int nvme = 1 << 4;
    int scsi = 1 << 6;
    assertThat(properties.get("dstatusflags")).isEqualTo(nvme | scsi);
    assertThat(cuFile.properties().hasPeerToPeerNvme()).isFalse();
    stub.direct(true);
    assertThat(cuFile.properties().hasPeerToPeerNvme()).isTrue();
    stub.direct(false);
    assertThat(cuFile.properties().allowsCompatMode()).isTrue();
    cuFile.closeDriver();
  }

  @Test
  void switchesPeerToPeerOnForEachKindOfStorage() {
    assertThat(cuFile.peerToPeer(Storage.NVME)).isInstanceOf(Availability.Absent.class);
    CuFile newer = CuFile.load(NativeStubs.newCuFile().toString()).orElseThrow(AssertionError::new);
    StubControls controls = StubControls.of(NativeStubs.newCuFile());
    newer.openDriver();
    assertThat(newer.properties().hasPeerToPeerNvme()).as("the bit says nothing").isTrue();
    assertThat(newer.properties().hasPeerToPeer()).isFalse();
    controls.direct(true);
    assertThat(newer.properties().hasPeerToPeer()).isTrue();
    controls.direct(false);
    assertThat(newer.peerToPeer(Storage.NVME)).isEqualTo(new Present<>(0));
    newer.setPeerToPeer(Storage.NVME, CuFile.PCI_PEER_TO_PEER);
    assertThat(newer.peerToPeer(Storage.NVME)).isEqualTo(new Present<>(1));
    assertThat(newer.peerToPeer(Storage.VIRTIOFS)).isEqualTo(new Present<>(0));
    assertThat(newer.peerToPeer(Storage.NVME_OVER_FABRICS)).isEqualTo(new Present<>(0));
    assertThatThrownBy(() -> newer.setPeerToPeer(Storage.NVME, CuFile.CHIP_TO_CHIP))
        .hasMessageContaining("CU_FILE_INVALID_VALUE");
    newer.closeDriver();
    assertThat(newer.peerToPeer(Storage.NVME)).as("forgotten").isEqualTo(new Present<>(0));
  }

  @Test
  void setsParametersOnlyBeforeTheDriverOpens() {
    CuFileParameters parameters = CuFileParameters.of(cuFile).orElseThrow(AssertionError::new);
    parameters.set(Flag.FORCE_COMPAT_MODE, true);
    cuFile.openDriver();
    assertThat(parameters.get(Flag.FORCE_COMPAT_MODE)).isTrue();
    assertThat(parameters.get(Flag.PROPERTIES_ALLOW_COMPAT_MODE)).isTrue();
    assertThatThrownBy(() -> parameters.set(Flag.FORCE_COMPAT_MODE, false))
        .hasMessageContaining("FORCE_COMPAT_MODE = false")
        .hasMessageContaining("CU_FILE_DRIVER_ALREADY_OPEN");
    cuFile.closeDriver();
    parameters.set(Flag.FORCE_COMPAT_MODE, false);
  }

  @Test
  void readsEveryPropertyFromItsPlace() {
    cuFile.openDriver();
    CuFileDriverProperties properties = CuFileDriverProperties.of(cuFile);
    assertThat(properties.get("major_version")).isZero();
    assertThat(properties.get("minor_version")).isZero();
    assertThat(properties.get("poll_thresh_size")).isEqualTo(4);
    assertThat(properties.get("max_direct_io_size")).isEqualTo(16_384);
    assertThat(properties.polls()).isFalse();
    assertThat(properties.get("fflags")).isEqualTo(2);
    assertThat(properties.get("max_device_cache_size")).isEqualTo(131_072);
    assertThat(properties.get("per_buffer_cache_size")).isEqualTo(1024);
    assertThat(properties.get("max_device_pinned_mem_size")).isEqualTo(33_554_432);
    assertThat(properties.get("max_batch_io_size")).isEqualTo(128);
    assertThat(properties.get("max_batch_io_timeout_msecs")).isEqualTo(5);
    cuFile.closeDriver();
  }

  @Test
  void setsTheLimitsOfAnOpenDriver() {
    CuFileLimits limits = new CuFileLimits(cuFile);
    limits.setMaxCacheKib(4096);
    assertThat(cuFile.useCount()).as("it opens the driver").isEqualTo(new Present<>(1L));
    limits.setPollMode(true, 8);
    limits.setMaxDirectIoKib(1024);
    limits.setMaxCacheKib(2048);
    limits.setMaxPinnedKib(4096);
    CuFileDriverProperties properties = CuFileDriverProperties.of(cuFile);
    assertThat(properties.polls()).isTrue();
    assertThat(properties.get("poll_thresh_size")).isEqualTo(8);
    assertThat(properties.get("max_direct_io_size")).isEqualTo(1024);
    assertThat(properties.get("max_device_cache_size")).isEqualTo(2048);
    assertThat(properties.get("max_device_pinned_mem_size")).isEqualTo(4096);
    assertThatThrownBy(() -> limits.setMaxDirectIoKib(3))
        .hasMessageContaining("CU_FILE_DRIVER_UNSUPPORTED_LIMIT");
    limits.setPollMode(false, 4);
    limits.setMaxDirectIoKib(16_384);
    limits.setMaxCacheKib(131_072);
    limits.setMaxPinnedKib(33_554_432);
    cuFile.closeDriver();
  }

  @Test
  void countsItsUsers() {
    assertThat(cuFile.useCount()).isEqualTo(new Present<>(0L));
    cuFile.openDriver();
    cuFile.openDriver();
    assertThat(cuFile.useCount()).isEqualTo(new Present<>(2L));
    cuFile.closeDriver();
    cuFile.closeDriver();
  }

  @ParameterizedTest
  @EnumSource
  void setsSizes(Size parameter) {
    CuFileParameters parameters = CuFileParameters.of(cuFile).orElseThrow(AssertionError::new);
    long before = parameters.get(parameter);
    parameters.set(parameter, 77);
    assertThat(parameters.get(parameter)).isEqualTo(77);
    parameters.set(parameter, before);
    if (parameter == Size.PROFILE_STATS) {
      assertThatThrownBy(() -> parameters.range(parameter))
          .hasMessageContaining("CU_FILE_INVALID_VALUE");
    } else {
      assertThat(parameters.range(parameter).orElseThrow(AssertionError::new).least()).isEqualTo(1);
    }
  }

  @ParameterizedTest
  @EnumSource
  void setsFlags(Flag parameter) {
    CuFileParameters parameters = newest();
    boolean before = parameters.get(parameter);
    parameters.set(parameter, !before);
    assertThat(parameters.get(parameter)).isEqualTo(!before);
    parameters.set(parameter, before);
  }

  @ParameterizedTest
  @EnumSource
  void setsTexts(Text parameter) {
    CuFileParameters parameters = newest();
    String before = parameters.get(parameter);
    parameters.set(parameter, "TRACE");
    assertThat(parameters.get(parameter)).isEqualTo("TRACE");
    parameters.set(parameter, before);
  }

  private static CuFileParameters newest() {
    CuFile newest =
        CuFile.load(NativeStubs.newCuFile().toString()).orElseThrow(AssertionError::new);
    return CuFileParameters.of(newest).orElseThrow(AssertionError::new);
  }

  @Test
  void refusesWhatIsNewerThanItself() {
    CuFileParameters parameters = CuFileParameters.of(cuFile).orElseThrow(AssertionError::new);
    assertThatThrownBy(() -> parameters.get(Flag.GDS_FALLBACK_IO))
        .hasMessageContaining("CU_FILE_INVALID_VALUE");
    assertThatThrownBy(() -> parameters.get(Text.RDMA_TRANSPORT))
        .hasMessageContaining("CU_FILE_INVALID_VALUE");
    CuFile.Version version = cuFile.version().orElseThrow(AssertionError::new);
    assertThat(Stream.of(Flag.values()).filter(flag -> !flag.isIn(version)))
        .containsExactly(Flag.PROPERTIES_POSIX_IO_MODE, Flag.GDS_FALLBACK_IO);
    assertThat(Stream.of(Text.values()).filter(text -> !text.isIn(version)))
        .containsExactly(Text.RDMA_TRANSPORT);
  }

  @Test
  void setsThePoolOfBounceBuffersOnGpus() {
    CuFileParameters parameters = newest();
    List<PoolSlab> chosen = List.of(new PoolSlab(1024, 128), new PoolSlab(16_384, 4));
    parameters.setGpuPool(chosen);
    assertThat(parameters.gpuPool(2)).isEqualTo(chosen);
    assertThatThrownBy(() -> parameters.gpuPool(3)).hasMessageContaining("CU_FILE_INVALID_VALUE");
    assertThatThrownBy(() -> parameters.setGpuPool(List.of()))
        .hasMessageContaining("CU_FILE_INVALID_VALUE");
  }

  @Test
  void exportsThePcieTree(@TempDir Path folder) throws IOException {
    CuFile newest =
        CuFile.load(NativeStubs.newCuFile().toString()).orElseThrow(AssertionError::new);
    Path file = folder.resolve("topology.json");
    assertThat(newest.exportTopology(file)).isEqualTo(new Present<>(file));
    assertThat(file).content().startsWith("// Topology file for cuFile.");
    Path nowhere = folder.resolve("none/topology.json");
    assertThatThrownBy(() -> newest.exportTopology(nowhere))
        .hasMessageContaining(nowhere.toString())
        .hasMessageContaining("CU_FILE_INVALID_VALUE");
    assertThat(cuFile.exportTopology(file)).isInstanceOf(Availability.Absent.class);
  }

  @Test
  void setsThePoolOfBounceBuffers() {
    CuFileParameters parameters = CuFileParameters.of(cuFile).orElseThrow(AssertionError::new);
    cuFile.openDriver();
    List<PoolSlab> before = parameters.pool(3);
    cuFile.closeDriver();
    assertThat(before).element(1).isEqualTo(new PoolSlab(1024, 64));
    List<PoolSlab> chosen = List.of(new PoolSlab(8, 9), new PoolSlab(16, 10), new PoolSlab(32, 11));
    parameters.setPool(chosen);
    assertThat(parameters.pool(3)).isEqualTo(chosen);
    parameters.setPool(before);
    assertThatThrownBy(() -> parameters.pool(2)).hasMessageContaining("CU_FILE_INVALID_VALUE");
  }

  /// The stub gives every word of the structs a value of its own.
  @Test
  void readsEveryCountFromItsPlace() {
    CuFileStatistics statistics = CuFileStatistics.of(cuFile).orElseThrow(AssertionError::new);
    assertThatThrownBy(statistics::start).hasMessageContaining("CU_FILE_DRIVER_NOT_INITIALIZED");
    statistics.setLevel(3);
    assertThat(statistics.level()).isEqualTo(3);
    cuFile.openDriver();
    statistics.start();
    CuFileStatistics.Counts basic = statistics.counts(1);
    assertThat(basic.totals())
        .hasSize(64)
        .containsEntry("reads.ok", 0L)
        .containsEntry("reads.failed", 1L)
        .containsEntry("buffersDeregistered.ok", 10L)
        .containsEntry("buffersDeregistered.failed", 11L)
        .containsEntry("read.bytes", 12L)
        .containsEntry("written.bytes", 13L)
        .containsEntry("read.sumMicros", 20L)
        .containsEntry("written.sumMicros", 21L)
        .containsEntry("batches.submitted.ok", 22L)
        .containsEntry("batches.submitted.failed", 23L)
        .containsEntry("batches.submittedInAll.ok", 50L)
        .containsEntry("batches.submittedInAll.failed", 51L)
        .containsEntry("batches.bytesRead", 52L)
        .containsEntry("batches.lastBytesWritten", 63L);
    assertThat(basic.readSizes()).isEmpty();
    CuFileStatistics.Counts detailed = statistics.counts(2);
    assertThat(detailed.totals()).isEqualTo(basic.totals());
    assertThat(detailed.readSizes()).hasSize(32).startsWith(64L);
    assertThat(detailed.writeSizes()).hasSize(32).endsWith(127L);
    assertThat(detailed.gpus()).isEmpty();
    CuFileStatistics.Counts all = statistics.counts(3);
    assertThat(all.totals()).isEqualTo(basic.totals());
    assertThat(all.writeSizes()).isEqualTo(detailed.writeSizes());
    assertThat(all.gpus()).hasSize(2);
    CuFileStatistics.Gpu second = all.gpus().get(1);
    assertThat(second.uuid()).isEqualTo("a000000000000000a100000000000000");
    assertThat(second.totals().values())
        .containsExactlyElementsOf(LongStream.rangeClosed(162, 190).boxed().toList());
    assertThat(second.totals())
        .containsEntry("reads.bytes", 162L)
        .containsEntry("reads.peerToPeer", 167L)
        .containsEntry("reads.posix", 169L)
        .containsEntry("reads.holes", 172L)
        .containsEntry("reads.failed", 174L)
        .containsEntry("writes.bytes", 175L)
        .containsEntry("writes.routed", 184L)
        .containsEntry("writes.failed", 185L)
        .containsEntry("mappingsTried", 186L)
        .containsEntry("mappings.ok", 187L)
        .containsEntry("mappings.failed", 188L)
        .containsEntry("mappingsFreed", 189L)
        .containsEntry("registeredBytes", 190L);
    statistics.reset();
    statistics.stop();
    assertThatThrownBy(() -> statistics.counts(1)).hasMessageContaining("CU_FILE_INVALID_VALUE");
    assertThatThrownBy(() -> statistics.setLevel(4)).hasMessageContaining("level 4");
    statistics.setLevel(0);
    cuFile.closeDriver();
  }

  @Test
  void readsEveryCountOfANewerLibraryFromItsPlace() {
    try (Counting library = new Counting(NativeStubs.newCuFile(), 0)) {
      CuFileStatistics.Counts basic = library.counts(1);
      assertThat(basic.unread()).isEmpty();
      assertThat(basic.totals())
          .hasSize(78)
          .containsEntry("batches.lastBytesWritten", 63L)
          .containsEntry("vectoredReads.ok", 64L)
          .containsEntry("vectoredWrites.failed", 67L)
          .containsEntry("vectoredRead.bytes", 68L)
          .containsEntry("vectoredWritten.sumMicros", 77L);
      CuFileStatistics.Counts detailed = library.counts(2);
      assertThat(detailed.readSizes()).hasSize(32).startsWith(78L);
      assertThat(detailed.writeSizes()).hasSize(32).endsWith(141L);
      CuFileStatistics.Counts all = library.counts(3);
      assertThat(all.gpus()).hasSize(2);
      CuFileStatistics.Gpu second = all.gpus().get(1);
      assertThat(second.totals())
          .containsEntry("reads.bytes", 176L)
          .containsEntry("reads.peerToPeer", 181L)
          .containsEntry("registeredBytes", 204L);
    }
  }

  /// Versions between 1.15 and 1.19, in which the structs did not change.
  @ParameterizedTest
  @ValueSource(ints = {1160, 1170, 1180})
  void readsALibraryByTheLayoutOfAnEarlierVersion(int version) {
    try (Counting library = new Counting(NativeStubs.cuFile(), version)) {
      CuFileStatistics.Counts all = library.counts(3);
      assertThat(all.unread()).isEmpty();
      assertThat(all.totals()).hasSize(64);
      assertThat(all.readSizes()).startsWith(64L);
      assertThat(all.gpus().get(1).totals()).containsEntry("registeredBytes", 190L);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1200, 1300, 2000})
  void readsOnlyWhatIsCommonOfAnUnknownVersion(int version) {
    try (Counting library = new Counting(NativeStubs.newCuFile(), version)) {
      for (int level = 1; level <= 3; level++) {
        CuFileStatistics.Counts counts = library.counts(level);
        assertThat(counts.unread())
            .isEqualTo(
                "libcufile %s is newer than 1.19, whose header was read",
                CuFile.Version.of(version));
        assertThat(counts.totals()).hasSize(64).containsEntry("batches.lastBytesWritten", 63L);
        assertThat(counts.readSizes()).isEmpty();
        assertThat(counts.gpus()).isEmpty();
      }
    }
  }

  @Test
  void readsOnlyWhatIsCommonWhereALibraryWritesMoreThanItsVersionHas() {
    try (Counting library = new Counting(NativeStubs.newCuFile(), 1180)) {
      for (int level = 1; level <= 3; level++) {
        CuFileStatistics.Counts counts = library.counts(level);
        assertThat(counts.unread())
            .isEqualTo("libcufile writes more than the layout SINCE_1_15 has");
        assertThat(counts.totals()).hasSize(64);
        assertThat(counts.gpus()).isEmpty();
      }
    }
  }

  /// The stub, which counts at level 3 until this object is closed.
  private static final class Counting implements AutoCloseable {
    private final StubControls controls;
    private final CuFile cuFile;
    private final CuFileStatistics statistics;

    /// @param version the version that the stub reports; 0 for its own
    Counting(Path library, int version) {
      controls = StubControls.of(library);
      cuFile = CuFile.load(library.toString()).orElseThrow(AssertionError::new);
      controls.version(version);
      statistics = CuFileStatistics.of(cuFile).orElseThrow(AssertionError::new);
      cuFile.openDriver();
      statistics.setLevel(3);
      statistics.start();
    }

    CuFileStatistics.Counts counts(int level) {
      return statistics.counts(level);
    }

    @Override
    public void close() {
      statistics.stop();
      statistics.setLevel(0);
      cuFile.closeDriver();
      controls.version(0);
    }
  }

  @Test
  void asksForTheBarSize() {
    assertThat(cuFile.barSizeKib(0)).isEqualTo(new Present<>(262144L));
    assertThatThrownBy(() -> cuFile.barSizeKib(5)).hasMessageContaining("GPU 5");
  }
}
