package dev.gantry.core.ring;

import dev.gantry.core.io.PathKind;
import org.junit.jupiter.api.Tag;

/// Rings that cuFile fills through the CPU.
@Tag("gpu-stub")
class CompatRingStubTest extends DeviceRingContract {
  @Override
  PathKind path() {
    return PathKind.COMPAT;
  }
}
