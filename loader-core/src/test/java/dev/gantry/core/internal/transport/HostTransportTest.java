// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import org.junit.jupiter.api.Tag;

@Tag("jdk-files")
class HostTransportTest extends TransportContract {
  @Override
  protected Device device() {
    return Device.HOST;
  }

  @Override
  protected Transport transport() {
    return Transport.HOST;
  }
}
