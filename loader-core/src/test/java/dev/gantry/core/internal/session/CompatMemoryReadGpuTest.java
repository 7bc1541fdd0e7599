// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Transport;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;

/// Reads into device memory by libcufile in compatibility mode, with its registrations.
@Tag("gpu")
class CompatMemoryReadGpuTest extends DeviceMemoryReadContract {
  @Override
  Transport transport() {
    return Transport.COMPAT;
  }

  /// Skips the tests if libcufile refuses the file, because udev does not know its disk, as in
  /// many containers. The stub accepts all files.
  @BeforeEach
  void cuFileTakesFiles() {
    try (Block block = allocate(4096, (byte) 0)) {
      gantry.read(
          List.of(new ReadInto("probe", new Extent(first, 0, 4096), block.memory())), options());
    } catch (DeviceUnavailableException e) {
      abort(e.getMessage());
    }
  }

  /// Does not apply: libcufile makes the reads, and its calls do not fail on demand.
  @Override
  void aFailureSaysWhatIsComplete() {}
}
