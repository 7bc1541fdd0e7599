// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Device;

class HostRingTest extends RingContract {
  @Override
  Device device() {
    return Device.HOST;
  }
}
