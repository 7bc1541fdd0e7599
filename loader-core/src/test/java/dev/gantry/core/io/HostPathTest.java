package dev.gantry.core.io;

import dev.gantry.core.Device;

class HostPathTest extends TransferPathContract {
  @Override
  protected Device device() {
    return Device.HOST;
  }

  @Override
  protected PathKind path() {
    return PathKind.HOST;
  }
}
