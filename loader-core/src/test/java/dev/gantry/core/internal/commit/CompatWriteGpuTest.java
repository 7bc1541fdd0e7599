// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Transport;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class CompatWriteGpuTest extends WriteContract {
  /// Skips the tests if libcufile refuses the file, because udev does not know its disk, as in
  /// many containers. The stub accepts all files.
  @BeforeEach
  void cuFileTakesFiles() {
    try {
      WriteReport _ = write(folder.resolve("probe"), options(), part(0, 4096));
    } catch (DeviceUnavailableException e) {
      abort(e.getMessage());
    }
  }

  @Override
  protected Transport transport() {
    return Transport.COMPAT;
  }

  /// The CPU gathers parts that share a block with others, and these parts count as staged.
  @Override
  protected Set<Transport> carriers() {
    return Set.of(Transport.COMPAT, Transport.STAGED);
  }
}
