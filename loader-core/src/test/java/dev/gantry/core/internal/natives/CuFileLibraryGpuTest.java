// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CuFileParameters.Flag;
import dev.gantry.core.internal.natives.CuFileParameters.PoolSlab;
import dev.gantry.core.internal.natives.CuFileParameters.Range;
import dev.gantry.core.internal.natives.CuFileParameters.Size;
import dev.gantry.core.internal.natives.CuFileParameters.Text;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Properties, limits, settings and statistics of the libcufile at hand: NVIDIA's on a GPU host.
@Tag("gpu")
class CuFileLibraryGpuTest {
  private final CUdevice device = new CUdevice();
  private CuFile cuFile;
  private CuFileParameters parameters;

  @BeforeEach
  void setUp() {
    cuFile = CuFile.find().orElseThrow(AssertionError::new);
    assumeTrue(
        cuFile.version().toOptional().filter(version -> version.isSince(1, 15)).isPresent(),
        "older than libcufile 1.15: " + cuFile.version());
    parameters = CuFileParameters.of(cuFile).orElseThrow(AssertionError::new);
    CUcontext context = new CUcontext();
    check(JCudaDriver.cuInit(0));
    check(JCudaDriver.cuDeviceGet(device, 0));
    check(JCudaDriver.cuDevicePrimaryCtxRetain(context, device));
    check(JCudaDriver.cuCtxSetCurrent(context));
    assertThat(cuFile.useCount()).isEqualTo(Availability.present(0L));
  }

  @AfterEach
  void tearDown() {
    assertThat(cuFile.useCount()).isEqualTo(Availability.present(0L));
    check(JCudaDriver.cuDevicePrimaryCtxRelease(device));
  }

  private static void check(int result) {
    assertThat(result).isEqualTo(CUresult.CUDA_SUCCESS);
  }

  @Test
  void theOpenDriverSaysWhatItCan() {
    cuFile.openDriver();
    assertThat(cuFile.useCount()).isEqualTo(Availability.present(1L));
    CuFileDriverProperties properties = CuFileDriverProperties.of(cuFile);
    assertThat(properties.get("max_batch_io_size")).isBetween(1L, 256L);
    assertThat(properties.get("max_batch_io_timeout_msecs")).isPositive();
    assertThat(properties.get("max_direct_io_size")).isBetween(64L, 16_384L);
    assertThat(properties.get("poll_thresh_size")).isPositive();
    assertThat(properties.get("max_device_cache_size")).isPositive();
    assertThat(properties.get("fflags")).isPositive();
    assertThat(cuFile.barSizeKib(0).orElseThrow(AssertionError::new)).isPositive();
    cuFile.closeDriver();
  }

  @Test
  void itsLimitsCanBeSet() {
    cuFile.openDriver();
    CuFileDriverProperties before = CuFileDriverProperties.of(cuFile);
    CuFileLimits limits = new CuFileLimits(cuFile);
    limits.setPollMode(false, 4);
    limits.setMaxDirectIoKib(before.get("max_direct_io_size"));
    limits.setMaxCacheKib(before.get("max_device_cache_size"));
    limits.setMaxPinnedKib(1 << 20);
    assertThatThrownBy(() -> limits.setMaxDirectIoKib(3))
        .hasMessageContaining("CU_FILE_DRIVER_UNSUPPORTED_LIMIT");
    cuFile.closeDriver();
  }

  @ParameterizedTest
  @EnumSource
  void sizesAreSetBeforeTheDriverOpens(Size parameter) {
    long before = parameters.get(parameter);
    parameters.set(parameter, before);
    assertThat(parameters.get(parameter)).isEqualTo(before);
    if (parameter != Size.PROFILE_STATS) {
      Range range = parameters.range(parameter).orElseThrow(AssertionError::new);
      // A largest value of all bits reads as -1.
      assertThat(Long.compareUnsigned(range.least(), range.most())).isNotPositive();
    }
    // The setter of the device cache's size opens libcufile 1.15.1's driver.
    while (cuFile.useCount().toOptional().orElse(0L) > 0) {
      cuFile.closeDriver();
    }
  }

  private static Stream<Flag> flags() {
    return Stream.of(Flag.values()).filter(flag -> flag.isIn(version()));
  }

  private static Stream<Text> texts() {
    // Reading this one is refused while it is unset.
    return Stream.of(Text.values())
        .filter(text -> text != Text.ENV_LOGFILE_PATH && text.isIn(version()));
  }

  private static CuFile.Version version() {
    return CuFile.find().then(CuFile::version).orElseThrow(AssertionError::new);
  }

  @ParameterizedTest
  @MethodSource("flags")
  void flagsAreSetBeforeTheDriverOpens(Flag parameter) {
    boolean before = parameters.get(parameter);
    parameters.set(parameter, before);
    assertThat(parameters.get(parameter)).isEqualTo(before);
  }

  @ParameterizedTest
  @MethodSource("texts")
  void textsAreSetBeforeTheDriverOpens(Text parameter, @TempDir Path folder) {
    String before = parameters.get(parameter);
    String chosen = parameter == Text.LOGGING_LEVEL ? "ERROR" : folder.toString();
    parameters.set(parameter, chosen);
    assertThat(parameters.get(parameter)).isEqualTo(chosen);
    parameters.set(parameter, before.isEmpty() ? "." : before);
  }

  @Test
  void thePoolOfBounceBuffersIsSetAsAPair() {
    List<PoolSlab> before = parameters.pool(3);
    assertThat(before).allSatisfy(slab -> assertThat(slab.kib()).isPositive());
    parameters.setPool(before);
    assertThat(parameters.pool(3)).isEqualTo(before);
  }

  @Test
  void nothingIsSetWhileItIsOpen() {
    cuFile.openDriver();
    assertThatThrownBy(() -> parameters.set(Size.PROPERTIES_IO_BATCHSIZE, 64))
        .hasMessageContaining("CU_FILE_DRIVER_ALREADY_OPEN");
    cuFile.closeDriver();
  }

  @Test
  void statisticsCountAReadAndItsWay(@TempDir Path folder) throws IOException {
    CuFileStatistics statistics = CuFileStatistics.of(cuFile).orElseThrow(AssertionError::new);
    cuFile.openDriver();
    statistics.setLevel(3);
    assertThat(statistics.level()).isEqualTo(3);
    statistics.start();
    try (TestFile file = TestFile.open(Files.write(folder.resolve("read"), new byte[65_536]));
        Arena arena = Arena.ofConfined()) {
      CuFileStatistics.Counts before = statistics.counts(3);
      try (CuFileHandle handle = register(file)) {
        MemorySegment memory = arena.allocate(65_536, 4096);
        assertThat(cuFile.read(handle, memory, 65_536, 0, 0)).isEqualTo(65_536);
      }
      CuFileStatistics.Counts basic = statistics.counts(1);
      assertThat(basic.totals().get("reads.ok"))
          .isGreaterThanOrEqualTo(before.totals().get("reads.ok"));
      assertThat(basic.totals().get("read.bytes")).isPositive();
      assertThat(statistics.counts(2).readSizes()).anyMatch(count -> count > 0);
      CuFileStatistics.Counts all = statistics.counts(3);
      assertThat(all.totals().get("read.bytes")).isPositive();
      if (!version().isSince(1, 20)) {
        assertThat(all.unread()).isEmpty();
      }
    } finally {
      statistics.reset();
      statistics.stop();
      statistics.setLevel(0);
      cuFile.closeDriver();
    }
  }

  private CuFileHandle register(TestFile file) {
    try {
      return cuFile.registerHandle(file.path(), file.descriptor());
    } catch (TransferException e) {
      return abort("cuFile cannot have files here: " + e.getMessage());
    }
  }
}
