package dev.gantry.core.commit;

import dev.gantry.core.Device;
import dev.gantry.core.io.PathKind;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;

/// The path that a write takes of which nobody asked for any.
@Tag("gpu")
class ChosenWriteGpuTest extends WritePathContract {
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
