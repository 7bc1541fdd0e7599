// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import java.util.List;

/// Slices in host memory.
class SliceTest extends SliceContract {
  @Override
  List<List<Device>> devices() {
    return List.of(List.of(Device.HOST));
  }
}
