package dev.gantry.core.commit;

import dev.gantry.core.Device;
import dev.gantry.core.io.PathKind;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class StagedWriteGpuTest extends WritePathContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  @Override
  protected PathKind path() {
    return PathKind.STAGED;
  }
}
