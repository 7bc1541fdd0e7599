// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFile.Flag;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The checks of a libcufile with switches for peer-to-peer DMA, before reads go by `gds`.
@Tag("gpu-stub")
class CuFileGateStubTest {
  private static final int LENGTH = 100_000;
  private static final int INVALID_VALUE = 5022;
  private static final int INTERNAL_ERROR = 5030;
  private static final Device GPU = new Device.Cuda(0);

  private final StubControls controls = StubControls.of(NativeStubs.newCuFile());

  @TempDir Path folder;

  private GantrySession session;
  private Path file;

  @BeforeEach
  void setUp() {
    System.setProperty(CuFile.PROPERTY, NativeStubs.newCuFile().toString());
    controls.clear();
    controls.direct(true);
    session = GantrySession.open();
    file = TestFiles.write(folder.resolve("file"), 1, LENGTH);
  }

  @AfterEach
  void tearDown() {
    session.close();
    controls.clear();
    controls.direct(false);
    controls.features(-1);
    System.clearProperty(CuFile.PROPERTY);
    assertThat(controls.count("opened")).isZero();
  }

  private TransferReport load() {
    List<ExtentRequest> whole = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 8));
    TransferOptions direct = TransferOptions.defaults().withCachePolicy(CachePolicy.DIRECT);
    try (Loaded loaded = session.load(whole, GPU, direct)) {
      assertThat(TestFiles.firstDifference(loaded, whole)).isEmpty();
      return loaded.report();
    }
  }

  private void assertStaged(String reason) {
    TransferReport report = load();
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(report.files().getFirst().reason()).contains(reason);
    assertThat(session.diagnose().directAbsence()).contains(reason);
    assertThat(session.diagnose(Location.of(file), GPU).prediction().transport())
        .isEqualTo(Transport.STAGED);
  }

  @Test
  void peerToPeerIsSwitchedOnForNvmeIfItIsOff() {
    long before = controls.count("posix");
    assertThat(load().bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(controls.calls("cuFileDriverSetP2PFlags")).isEqualTo(1);
    assertThat(controls.count("posix")).isEqualTo(before);
    assertThat(session.diagnose().directAbsence()).isEmpty();
  }

  @Test
  void theDeprecatedBitIsNotBelieved() {
    controls.features(2);
    assertStaged("CU_FILE_P2P_SUPPORTED is not set");
    assertThat(controls.calls("cuFileDriverSetP2PFlags")).isZero();
  }

  @Test
  void aMachineThatRefusesTheSwitchIsNotBelieved() {
    controls.fail("cuFileDriverSetP2PFlags", 0, INVALID_VALUE, 0);
    assertStaged("CU_FILE_INVALID_VALUE");
  }

  @Test
  void aDriverThatMayFallBackToTheCpuIsNotBelieved() {
    CuFile others = CuFile.find().orElseThrow(AssertionError::new);
    others.set(Flag.PROPERTIES_ALLOW_COMPAT_MODE, false);
    others.set(Flag.GDS_FALLBACK_IO, true);
    others.openDriver();
    try {
      assertStaged("gds_fallback_io");
    } finally {
      others.closeDriver();
      others.set(Flag.GDS_FALLBACK_IO, false);
      others.set(Flag.PROPERTIES_ALLOW_COMPAT_MODE, true);
    }
  }

  @Test
  void aSessionRefusesTheFallbacksByItself() {
    CuFile others = CuFile.find().orElseThrow(AssertionError::new);
    others.set(Flag.GDS_FALLBACK_IO, true);
    others.set(Flag.PROPERTIES_POSIX_IO_MODE, true);
    assertThat(load().bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(others.get(Flag.GDS_FALLBACK_IO)).isFalse();
    assertThat(others.get(Flag.PROPERTIES_POSIX_IO_MODE)).isFalse();
  }

  @Test
  void aTrialReadHasTheLastWordForDoctor() {
    assertThat(session.diagnose(Location.of(file), GPU).prediction().transport())
        .isEqualTo(Transport.GDS);
    assertThat(controls.calls("cuFileRead")).isEqualTo(1);
    controls.fail("cuFileRead", 1, -INTERNAL_ERROR, 0);
    TransferReport.FileReport refused = session.diagnose(Location.of(file), GPU).prediction();
    assertThat(refused.transport()).isEqualTo(Transport.STAGED);
    assertThat(refused.reason()).contains("CU_FILE_INTERNAL_ERROR");
  }

  @Test
  void anEmptyFileIsNotTried() {
    Path empty = TestFiles.write(folder.resolve("empty"), 1, 0);
    assertThat(session.diagnose(Location.of(empty), GPU).prediction().transport())
        .isEqualTo(Transport.GDS);
    assertThat(controls.calls("cuFileRead")).isZero();
  }
}
