// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.natives.CuFileParameters.Flag;
import dev.gantry.core.internal.natives.CuFileParameters.PoolSlab;
import dev.gantry.core.internal.natives.CuFileParameters.Range;
import dev.gantry.core.internal.natives.CuFileParameters.Size;
import dev.gantry.core.internal.natives.CuFileParameters.Text;
import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Properties, limits, settings and statistics of this machine's libcufile, which is NVIDIA's on a
/// GPU host. Settings that are made while the driver is closed hold for the next opening in the
/// same process, so each part runs in a process of its own: no part depends on another, and a
/// process that libcufile ends does not end the tests.
@Tag("gpu")
class CuFileLibraryGpuTest {
  private static final String SKIPPED = "skipped: ";

  /// How a JVM that a fault in libcufile ends names the place.
  private static final String IN_LIBRARY = "[libcufile.so";

  private static final int BYTES = 65_536;
  private static final Device.Cuda GPU = new Device.Cuda(0);

  @TempDir Path folder;

  enum Part {
    PROPERTIES_AND_LIMITS {
      @Override
      void run(CuFile cuFile, Path folder) {
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
        CuFileLimits limits = new CuFileLimits(cuFile);
        limits.setPollMode(false, 4);
        limits.setMaxDirectIoKib(properties.get("max_direct_io_size"));
        limits.setMaxCacheKib(properties.get("max_device_cache_size"));
        limits.setMaxPinnedKib(1 << 20);
        assertThatThrownBy(() -> limits.setMaxDirectIoKib(3))
            .hasMessageContaining("CU_FILE_DRIVER_UNSUPPORTED_LIMIT");
        cuFile.closeDriver();
      }
    },
    SETTINGS {
      @Override
      void run(CuFile cuFile, Path folder) {
        new Settings(cuFile, folder).setWhatIsInForce();
      }
    },
    STATISTICS {
      @Override
      void run(CuFile cuFile, Path folder) throws IOException {
        CuFileStatistics statistics = CuFileStatistics.of(cuFile).orElseThrow(AssertionError::new);
        cuFile.openDriver();
        statistics.setLevel(3);
        assertThat(statistics.level()).isEqualTo(3);
        statistics.start();
        try {
          countARead(cuFile, statistics, folder);
        } finally {
          // A reset of the counts before libcufile 1.15.1 had stopped counting ended one process,
          // in a thread of libcufile.
          statistics.stop();
          statistics.reset();
          statistics.setLevel(0);
          cuFile.closeDriver();
        }
      }
    };

    abstract void run(CuFile cuFile, Path folder) throws IOException;
  }

  private static void countARead(CuFile cuFile, CuFileStatistics statistics, Path folder)
      throws IOException {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(GPU), BYTES);
    try (TestFile file = TestFile.open(Files.write(folder.resolve("read"), new byte[BYTES]))) {
      CuFileStatistics.Counts before = statistics.counts(3);
      CuFileHandle registered;
      try {
        registered = cuFile.registerHandle(file.path(), file.descriptor());
      } catch (TransferException e) {
        System.out.println(SKIPPED + "cuFile cannot have files here: " + e.getMessage());
        return;
      }
      try (CuFileHandle handle = registered) {
        assertThat(cuFile.read(handle, slab.deviceSegment(), BYTES, 0, 0)).isEqualTo(BYTES);
      }
      CuFileStatistics.Counts basic = statistics.counts(1);
      assertThat(basic.totals().get("reads.ok"))
          .isGreaterThanOrEqualTo(before.totals().get("reads.ok"));
      assertThat(basic.totals().get("read.bytes")).isPositive();
      assertThat(statistics.counts(2).readSizes()).anyMatch(count -> count > 0);
      CuFileStatistics.Counts all = statistics.counts(3);
      assertThat(all.totals().get("read.bytes")).isPositive();
      if (!version(cuFile).isNewerThanKnown()) {
        assertThat(all.unread()).isEmpty();
      }
    } finally {
      slab.release();
    }
  }

  private static CuFile.Version version(CuFile cuFile) {
    return cuFile.version().orElseThrow(AssertionError::new);
  }

  /// Sets each setting to the value that is in force, so that the driver can open with it. A value
  /// that was not set is read only while the driver is open, because libcufile returns other
  /// values before.
  private static final class Settings {
    private static final int POOL_KINDS = 3;

    private final CuFile cuFile;
    private final CuFileParameters parameters;
    private final Path folder;
    private final Map<Size, Long> sizes = new EnumMap<>(Size.class);
    private final Map<Flag, Boolean> flags = new EnumMap<>(Flag.class);
    private final Map<Text, String> texts = new EnumMap<>(Text.class);
    private List<PoolSlab> pool = List.of();

    Settings(CuFile cuFile, Path folder) {
      this.cuFile = cuFile;
      this.parameters = CuFileParameters.of(cuFile).orElseThrow(AssertionError::new);
      this.folder = folder;
    }

    void setWhatIsInForce() {
      cuFile.openDriver();
      read();
      assertThatThrownBy(() -> parameters.set(Size.PROPERTIES_IO_BATCHSIZE, 64))
          .hasMessageContaining("CU_FILE_DRIVER_ALREADY_OPEN");
      cuFile.closeDriver();
      sizes.keySet().forEach(this::set);
      flags.forEach((flag, value) -> {
        parameters.set(flag, value);
        assertThat(parameters.get(flag)).as("%s", flag).isEqualTo(value);
      });
      texts.forEach((text, value) -> {
        parameters.set(text, value);
        assertThat(parameters.get(text)).as("%s", text).isEqualTo(value);
      });
      parameters.setPool(pool);
      assertThat(parameters.pool(POOL_KINDS)).isEqualTo(pool);
      cuFile.openDriver();
      assertThat(parameters.get(Text.LOG_DIR)).isEqualTo(folder.toString());
      assertThat(parameters.pool(POOL_KINDS)).isEqualTo(pool);
      cuFile.closeDriver();
    }

    private void read() {
      for (Size size : Size.values()) {
        sizes.put(size, parameters.get(size));
      }
      CuFile.Version version = version(cuFile);
      Stream.of(Flag.values())
          .filter(flag -> flag.isIn(version))
          .forEach(flag -> flags.put(flag, parameters.get(flag)));
      texts.put(Text.LOGGING_LEVEL, "ERROR");
      texts.put(Text.LOG_DIR, folder.toString());
      if (Text.RDMA_TRANSPORT.isIn(version)) {
        texts.put(Text.RDMA_TRANSPORT, parameters.get(Text.RDMA_TRANSPORT));
      }
      pool = parameters.pool(POOL_KINDS);
      assertThat(pool).allSatisfy(slab -> assertThat(slab.kib()).isPositive());
    }

    private void set(Size size) {
      long value = sizes.get(size);
      parameters.set(size, value);
      assertThat(parameters.get(size)).as("%s", size).isEqualTo(value);
      if (size != Size.PROFILE_STATS) {
        Range range = parameters.range(size).orElseThrow(AssertionError::new);
        assertThat(range.least()).as("%s", size).isNotNegative();
      }
      // Some setters of sizes open the driver of libcufile 1.15.1.
      while (cuFile.useCount().toOptional().orElse(0L) > 0) {
        cuFile.closeDriver();
      }
    }
  }

  /// Runs one part.
  static final class Program {
    public static void main(String[] arguments) throws IOException {
      CuFile cuFile = CuFile.find().orElseThrow(AssertionError::new);
      if (cuFile.version().toOptional().filter(one -> one.isSince(1, 15)).isEmpty()) {
        System.out.println(SKIPPED + "older than libcufile 1.15: " + cuFile.version());
        return;
      }
      try (var _ = CudaContext.of(GPU).enter()) {
        Part.valueOf(arguments[0]).run(cuFile, Path.of(arguments[1]));
      }
      assertThat(cuFile.useCount()).isEqualTo(Availability.present(0L));
    }
  }

  @ParameterizedTest
  @EnumSource
  void theLibraryAtHandKeepsItsContract(Part part) {
    ChildJvm.Result result =
        ChildJvm.run("256m", Map.of(), Program.class, part.name(), folder.toString());
    // libcufile 1.15.1 counts in a thread of its own, which has ended two processes of this part.
    assumeTrue(
        part != Part.STATISTICS || !result.out().contains(IN_LIBRARY),
        "libcufile's own thread ended the process");
    String out = result.requirePassed();
    assumeTrue(!out.contains(SKIPPED), out);
  }
}
