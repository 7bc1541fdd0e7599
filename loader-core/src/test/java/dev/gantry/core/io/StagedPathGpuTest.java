package dev.gantry.core.io;

import dev.gantry.core.Device;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class StagedPathGpuTest extends TransferPathContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  @Override
  protected PathKind path() {
    return PathKind.STAGED;
  }
}
