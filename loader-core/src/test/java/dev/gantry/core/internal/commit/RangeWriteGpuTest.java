// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;

/// Writes in place from memory of a device.
@Tag("gpu")
class RangeWriteGpuTest extends RangeWriteTest {
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final List<DeviceSlab> slabs = new ArrayList<>();

  @Override
  Memory memory(byte[] bytes, Arena arena, Random random) {
    int phase = random.nextInt(5000);
    DeviceSlab slab = DeviceSlab.allocate(context, bytes.length + phase + 1);
    slabs.add(slab);
    MemorySegment host = arena.allocate(Math.max(1, bytes.length));
    host.asSlice(0, bytes.length).copyFrom(MemorySegment.ofArray(bytes));
    if (bytes.length > 0) {
      slab.copyFromHost(phase, host.asSlice(0, bytes.length));
    }
    return new Memory.OnDevice(new Device.Cuda(0), slab.address() + phase, bytes.length);
  }

  @AfterEach
  void free() {
    slabs.forEach(DeviceSlab::release);
  }
}
