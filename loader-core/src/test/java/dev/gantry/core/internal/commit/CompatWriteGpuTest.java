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
  /// libcufile takes no file where udev does not know its disk, as in many containers: then there
  /// is nothing to test here. The stub takes all.
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

  /// Parts that share a block with others are gathered by the CPU.
  @Override
  protected Set<Transport> carriers() {
    return Set.of(Transport.COMPAT, Transport.STAGED);
  }
}
