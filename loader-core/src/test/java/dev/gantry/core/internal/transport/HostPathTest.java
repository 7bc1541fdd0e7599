package dev.gantry.core.internal.transport;

import dev.gantry.core.Device;
import dev.gantry.core.Transport;

class HostPathTest extends TransferPathContract {
  @Override
  protected Device device() {
    return Device.HOST;
  }

  @Override
  protected Transport path() {
    return Transport.HOST;
  }
}
