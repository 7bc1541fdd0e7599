// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.internal.natives.CudaDriver;
import java.util.List;
import org.junit.jupiter.api.Tag;

/// Slices on one GPU, and on two GPUs if the machine has them.
@Tag("gpu")
class SliceGpuTest extends SliceContract {
  @Override
  List<List<Device>> devices() {
    Device first = new Device.Cuda(0);
    int count = CudaDriver.load().orElseThrow(AssertionError::new).deviceCount();
    return count == 1
        ? List.of(List.of(first), List.of(first, Device.HOST))
        : List.of(
            List.of(first),
            List.of(new Device.Cuda(1), first),
            List.of(first, Device.HOST, new Device.Cuda(1)));
  }
}
