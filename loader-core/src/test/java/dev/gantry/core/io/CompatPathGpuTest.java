package dev.gantry.core.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Gantry;
import dev.gantry.core.Loaded;
import dev.gantry.core.plan.Wanted;
import dev.gantry.core.testing.TestFiles;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

@Tag("gpu")
class CompatPathGpuTest extends TransferPathContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  /// libcufile takes no file where udev does not know its disk, as in many containers: then there is
  /// nothing to test here. The stub takes all.
  @BeforeEach
  void cuFileTakesFiles(@TempDir Path probes) {
    Path probe = TestFiles.write(probes.resolve("probe"), 1, 4096);
    List<Wanted> wanted = List.of(new Wanted(new Extent(probe, 0, 4096), 1));
    try (Gantry session = Gantry.open();
        Loaded loaded =
            session.load(wanted, device(), TransferOptions.defaults().withPath(PathKind.COMPAT))) {
      assertThat(loaded.report().bytes()).isEqualTo(4096);
    } catch (DeviceUnavailableException e) {
      abort(e.getMessage());
    }
  }

  @Override
  protected PathKind path() {
    return PathKind.COMPAT;
  }
}
