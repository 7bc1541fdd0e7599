package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Availability.Present;
import dev.gantry.core.internal.natives.CuFileParameters.Flag;
import dev.gantry.core.internal.natives.CuFileParameters.PoolSlab;
import dev.gantry.core.internal.natives.CuFileParameters.Range;
import dev.gantry.core.internal.natives.CuFileParameters.Size;
import dev.gantry.core.internal.natives.CuFileParameters.Text;
import dev.gantry.core.internal.natives.CuFileProperties.Storage;
import dev.gantry.core.internal.natives.CuFileStatistics.Gpu;
import dev.gantry.core.internal.natives.CuFileStatistics.Operations;
import dev.gantry.core.internal.natives.CuFileStatistics.Ways;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Version, properties, parameters and statistics, whose structs a C compiler laid out.
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
    assertThat(cuFile.version()).isEqualTo(new Present<>(new CuFileVersion(1, 15)));
    assertThat(CuFileVersion.of(1070)).hasToString("1.7");
    assertThat(CuFileVersion.of(2000).isAtLeast(1, 14)).isTrue();
    assertThat(CuFileVersion.of(1130).isAtLeast(1, 14)).isFalse();
  }

  @Test
  void readsTheDriversProperties() {
    assertThatThrownBy(cuFile::properties).hasMessageContaining("CU_FILE_DRIVER_NOT_INITIALIZED");
    cuFile.openDriver();
    CuFileProperties properties = cuFile.properties();
    assertThat(properties.driverMajor()).isZero();
    assertThat(properties.supported()).containsExactlyInAnyOrder(Storage.NVME, Storage.SCSI);
    assertThat(properties.allowsCompatMode()).isTrue();
    assertThat(properties.perBufferCacheKib()).isEqualTo(1024);
    assertThat(properties.featureFlags()).isEqualTo(2);
    assertThat(properties.maxBatchSize()).hasValue(128);
    assertThat(properties.batchTimeoutMilliseconds()).hasValue(5);
    cuFile.closeDriver();
  }

  @Test
  void changesTheDriversSettings() {
    cuFile.openDriver();
    CuFileProperties before = cuFile.properties();
    cuFile.setPollMode(true, 8);
    cuFile.setMaxDirectIoSize(1024);
    cuFile.setMaxCacheSize(65536);
    cuFile.setMaxPinnedMemorySize(1 << 20);
    CuFileProperties after = cuFile.properties();
    assertThat(after.polls()).isTrue();
    assertThat(after.pollThresholdKib()).isEqualTo(8);
    assertThat(after.maxDirectIoKib()).isEqualTo(1024);
    assertThat(after.maxDeviceCacheKib()).isEqualTo(65536);
    assertThat(after.maxPinnedKib()).isEqualTo(1 << 20);
    assertThatThrownBy(() -> cuFile.setMaxDirectIoSize(3))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("3 KiB")
        .hasMessageContaining("CU_FILE_DRIVER_UNSUPPORTED_LIMIT");
    cuFile.setPollMode(false, before.pollThresholdKib());
    cuFile.setMaxDirectIoSize(before.maxDirectIoKib());
    cuFile.setMaxCacheSize(before.maxDeviceCacheKib());
    cuFile.setMaxPinnedMemorySize(before.maxPinnedKib());
    cuFile.closeDriver();
  }

  @Test
  void setsParametersOnlyBeforeTheDriverOpens() {
    CuFileParameters parameters = cuFile.parameters().orElseThrow(AssertionError::new);
    parameters.set(Size.EXECUTION_MAX_IO_THREADS, 8);
    parameters.set(Flag.STREAM_MEMOPS_BYPASS, true);
    parameters.set(Text.LOG_DIR, "/var/tmp");
    parameters.setPoolSlabs(List.of(new PoolSlab(4096, 16)));
    cuFile.openDriver();
    assertThat(parameters.get(Size.EXECUTION_MAX_IO_THREADS)).isEqualTo(8);
    assertThat(parameters.get(Flag.STREAM_MEMOPS_BYPASS)).isTrue();
    assertThat(parameters.get(Flag.FORCE_COMPAT_MODE)).isFalse();
    assertThat(parameters.get(Text.LOG_DIR)).isEqualTo("/var/tmp");
    assertThat(parameters.range(Size.PROPERTIES_IO_BATCHSIZE))
        .isEqualTo(new Present<>(new Range(1, 1 << 20)));
    assertThatThrownBy(() -> parameters.set(Flag.FORCE_COMPAT_MODE, true))
        .hasMessageContaining("FORCE_COMPAT_MODE = true")
        .hasMessageContaining("CU_FILE_DRIVER_ALREADY_OPEN");
    cuFile.closeDriver();
  }

  @Test
  void asksForTheBarSize() {
    assertThat(cuFile.barSizeKib(0)).isEqualTo(new Present<>(262144L));
    assertThatThrownBy(() -> cuFile.barSizeKib(5)).hasMessageContaining("GPU 5");
  }

  @Test
  void readsTheStatisticsOfEachLevel(@TempDir Path folder) throws IOException {
    CuFileStatistics statistics = cuFile.statistics().orElseThrow(AssertionError::new);
    cuFile.openDriver();
    statistics.setLevel(1);
    assertThat(statistics.level()).isEqualTo(1);
    assertThatThrownBy(statistics::gpus).hasMessageContaining("CU_FILE_INVALID_VALUE");
    statistics.setLevel(3);
    statistics.start();
    statistics.reset();
    try (TestFile file = TestFile.open(Files.write(folder.resolve("f"), new byte[8192]));
        Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(8192, 4096);
      cuFile.registerBuffer(buffer);
      cuFile.read(handle, buffer, 4096, 0, 0);
      cuFile.read(handle, buffer, 100, 1, 0);
      cuFile.write(handle, buffer, 4096, 0, 4096);

      CuFileStatistics.Totals totals = statistics.totals();
      assertThat(totals.reads()).isEqualTo(new Operations(2, 0));
      assertThat(totals.writes()).isEqualTo(new Operations(1, 0));
      assertThat(totals.bufferRegistrations()).isEqualTo(new Operations(1, 0));
      assertThat(totals.bytesRead()).isEqualTo(4196);
      assertThat(totals.bytesWritten()).isEqualTo(4096);
      assertThat(statistics.readSizes()).hasSize(32).startsWith(0L, 0L, 2L, 0L);
      assertThat(statistics.gpus())
          .containsExactly(
              new Gpu("00".repeat(16), noWays(), noWays(), 0),
              new Gpu(
                  "ab".repeat(16),
                  new Ways(4196, 2, 0, 0, 2, 1, 7),
                  new Ways(4096, 1, 0, 0, 1, 0, 9),
                  8192));
      cuFile.deregisterBuffer(buffer);
    }
    statistics.stop();
    cuFile.closeDriver();
  }

  private static Ways noWays() {
    return new Ways(0, 0, 0, 0, 0, 0, 0);
  }
}
