// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.internal.natives.Availability.Present;
import dev.gantry.core.internal.natives.CuFileParameters.Flag;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Version, properties and parameters, whose structs a C compiler laid out.
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
    CuFileProperties properties = cuFile.properties();
    int nvme = 1 << 4;
    int scsi = 1 << 6;
    assertThat(properties.storageFlags()).isEqualTo(nvme | scsi);
    assertThat(properties.hasPeerToPeerNvme()).isFalse();
    assertThat(new CuFileProperties(1 << 11, false).hasPeerToPeerNvme()).isTrue();
    assertThat(properties.allowsCompatMode()).isTrue();
    cuFile.closeDriver();
  }

  @Test
  void setsParametersOnlyBeforeTheDriverOpens() {
    CuFileParameters parameters = cuFile.parameters().orElseThrow(AssertionError::new);
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
  void asksForTheBarSize() {
    assertThat(cuFile.barSizeKib(0)).isEqualTo(new Present<>(262144L));
    assertThatThrownBy(() -> cuFile.barSizeKib(5)).hasMessageContaining("GPU 5");
  }
}
