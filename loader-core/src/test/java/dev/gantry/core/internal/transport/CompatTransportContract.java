// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

abstract class CompatTransportContract extends TransportContract {
  /// Skips the tests if libcufile refuses the file, because udev does not know its disk, as in
  /// many containers. The stub accepts all files.
  @BeforeEach
  void cuFileTakesFiles(@TempDir Path probes) {
    Path probe = TestFiles.write(probes.resolve("probe"), 1, 4096);
    List<ExtentRequest> wanted = List.of(new ExtentRequest(new Extent(probe, 0, 4096), 1));
    try (GantrySession session = GantrySession.open();
        Loaded loaded =
            session.load(
                wanted, device(), TransferOptions.defaults().withTransport(Transport.COMPAT))) {
      assertThat(loaded.report().bytes()).isEqualTo(4096);
    } catch (DeviceUnavailableException e) {
      abort(e.getMessage());
    }
  }

  @Override
  protected Transport transport() {
    return Transport.COMPAT;
  }
}
