// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;

/// The path that a load takes of which nobody asked for any.
@Tag("gpu")
class ChosenTransportGpuTest extends TransportContract {
  @Override
  protected Device device() {
    return new Device.Cuda(0);
  }

  @Override
  protected @Nullable Transport path() {
    return null;
  }

  @Override
  protected Set<Transport> carriers() {
    return Set.of(Transport.STAGED, Transport.GDS);
  }
}
