// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The settings that libcufile reads when a session opens its driver.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class DriverSettingsStubTest {
  private static final int LENGTH = 1 << 20;

  @TempDir Path folder;
  private final StubControls cuFile = StubControls.cuFile();
  private Path file;
  private long foldersBefore;

  @BeforeEach
  void begin() throws IOException {
    file = TestFiles.write(folder.resolve("weights"), 1, LENGTH);
    cuFile.clear();
    cuFile.direct(true);
    foldersBefore = settingsFiles();
  }

  @AfterEach
  void nothingIsLeft() throws IOException {
    cuFile.direct(false);
    System.clearProperty(DriverSettings.PROPERTY);
    System.clearProperty(CuFile.PROPERTY);
    assertThat(settingsFiles()).isEqualTo(foldersBefore);
  }

  private static long settingsFiles() throws IOException {
    return files().size();
  }

  private static List<Path> files() throws IOException {
    try (Stream<Path> all = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
      return all.map(one -> one.resolve("cufile.json")).filter(Files::exists).toList();
    }
  }

  private TransferReport load(GantrySession session) {
    TransferOptions options = TransferOptions.defaults().withCachePolicy(CachePolicy.DIRECT);
    ExtentRequest whole = new ExtentRequest(new Extent(file, 0, LENGTH), 8);
    try (Loaded loaded = session.load(List.of(whole), new Device.Cuda(0), options)) {
      return loaded.report();
    }
  }

  private static CuFileConfig batches(int size) {
    return CuFileConfig.of(Map.of("properties.io_batchsize", size, "execution.parallel_io", true));
  }

  @Test
  void theDriverReadsAFileThatOnlyTheOwnerCan() throws IOException {
    try (GantrySession session = GantrySession.open(batches(64))) {
      assertThat(load(session).bytesByTransport()).containsOnlyKeys(Transport.GDS);
      assertThat(cuFile.config("io_batchsize")).isEqualTo(64);
      assertThat(cuFile.config("parallel_io")).isEqualTo(1);
      List<Path> written = files();
      assertThat(written).hasSize((int) foldersBefore + 1);
      assertThat(written)
          .anySatisfy(one -> {
            assertThat(one).content().isEqualTo(batches(64).json());
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(one)))
                .isEqualTo("rw-------");
            assertThat(
                    PosixFilePermissions.toString(Files.getPosixFilePermissions(one.getParent())))
                .isEqualTo("rwx------");
          });
    }
    try (GantrySession session = GantrySession.open()) {
      load(session);
      assertThat(cuFile.config("io_batchsize")).as("the variable is gone").isEqualTo(-1);
    }
  }

  @Test
  void aSessionWithOtherSettingsWaitsForTheDriver() {
    try (GantrySession other = GantrySession.open(batches(32))) {
      try (GantrySession first = GantrySession.open(batches(64));
          GantrySession same = GantrySession.open(batches(64));
          GantrySession any = GantrySession.open()) {
        assertThat(load(first).bytesByTransport()).containsOnlyKeys(Transport.GDS);
        assertThat(load(same).bytesByTransport()).containsOnlyKeys(Transport.GDS);
        assertThat(load(any).bytesByTransport()).containsOnlyKeys(Transport.GDS);
        TransferReport refused = load(other);
        assertThat(refused.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
        assertThat(refused.files().getFirst().reason()).contains(DriverSettings.OTHERS);
      }
      assertThat(load(other).bytesByTransport()).containsOnlyKeys(Transport.GDS);
      assertThat(cuFile.config("io_batchsize")).isEqualTo(32);
    }
  }

  @Test
  void aDriverThatOtherCodeOpenedKeepsItsSettings() {
    CuFile others = CuFile.find().orElseThrow(AssertionError::new);
    try (GantrySession session = GantrySession.open(batches(64))) {
      others.openDriver();
      assertThat(load(session).files().getFirst().reason()).contains(DriverSettings.OTHERS);
      others.closeDriver();
      assertThat(load(session).bytesByTransport()).containsOnlyKeys(Transport.GDS);
      assertThat(cuFile.config("io_batchsize")).isEqualTo(64);
    }
  }

  @Test
  void thePropertyNamesAFileForSessionsWithoutSettings() throws IOException {
    Path mine = Files.writeString(folder.resolve("mine.json"), batches(16).json());
    System.setProperty(DriverSettings.PROPERTY, mine.toString());
    try (GantrySession session = GantrySession.open()) {
      load(session);
      assertThat(cuFile.config("io_batchsize")).isEqualTo(16);
    }
    System.setProperty(DriverSettings.PROPERTY, folder.resolve("none").toString());
    try (GantrySession session = GantrySession.open()) {
      load(session);
      assertThat(cuFile.config("io_batchsize")).isEqualTo(-1);
    }
  }

  /// The environment is the C library's; Java's copy of it is made at the start of the process.
  @Test
  void theEnvironmentIsPutBack() {
    Libc.setEnvironment("GANTRY_TEST", "set");
    Libc.setEnvironment("GANTRY_TEST", null);
    Libc.setEnvironment("GANTRY_TEST", null);
    assertThat(System.getenv("GANTRY_TEST")).isNull();
  }

  /// No call can make an older libcufile refuse reads through the CPU.
  @Test
  void anOlderLibraryIsBelievedWhereTheFileForbidsTheCpu() {
    StubControls old = StubControls.of(NativeStubs.oldCuFile());
    old.direct(true);
    System.setProperty(CuFile.PROPERTY, NativeStubs.oldCuFile().toString());
    CuFileConfig strict = CuFileConfig.of(Map.of("properties.allow_compat_mode", false));
    try (GantrySession doubted = GantrySession.open()) {
      assertThat(load(doubted).bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    }
    try (GantrySession believed = GantrySession.open(strict)) {
      assertThat(load(believed).bytesByTransport()).containsOnlyKeys(Transport.GDS);
    } finally {
      old.direct(false);
    }
  }
}
