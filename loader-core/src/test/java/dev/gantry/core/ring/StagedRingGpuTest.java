package dev.gantry.core.ring;

import dev.gantry.core.io.PathKind;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class StagedRingGpuTest extends DeviceRingContract {
  @Override
  PathKind path() {
    return PathKind.STAGED;
  }
}
