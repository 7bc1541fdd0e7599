package dev.gantry.core.io;

import dev.gantry.core.Device;
import java.util.Set;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class CompatPathGpuTest extends TransferPathContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  @Override
  protected PathKind path() {
    return PathKind.COMPAT;
  }

  /// Where cuFile can pass the CPU by, it does so unasked.
  @Override
  protected Set<PathKind> carriers() {
    return Set.of(PathKind.COMPAT, PathKind.GDS);
  }
}
