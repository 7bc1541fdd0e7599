// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;

class HostFillTest extends FillContract {
  @Override
  Device device() {
    return Device.HOST;
  }
}
