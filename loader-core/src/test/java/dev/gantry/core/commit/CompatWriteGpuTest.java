package dev.gantry.core.commit;

import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.io.PathKind;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class CompatWriteGpuTest extends WritePathContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

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
  protected PathKind path() {
    return PathKind.COMPAT;
  }

  /// What shares its blocks with others is gathered by the CPU.
  @Override
  protected Set<PathKind> carriers() {
    return Set.of(PathKind.COMPAT, PathKind.STAGED);
  }
}
