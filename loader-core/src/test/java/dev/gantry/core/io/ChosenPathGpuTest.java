package dev.gantry.core.io;

import dev.gantry.core.Device;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;

/// The path that a load takes of which nobody asked for any.
@Tag("gpu")
class ChosenPathGpuTest extends TransferPathContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  @Override
  protected @Nullable PathKind path() {
    return null;
  }

  @Override
  protected Set<PathKind> carriers() {
    return Set.of(PathKind.STAGED, PathKind.GDS);
  }
}
