// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Tag;

@Tag("gpu")
class ConversionGpuTest extends ConversionContract {
  private static final Device.Cuda DEVICE = new Device.Cuda(0);

  @Override
  Device device() {
    return DEVICE;
  }

  @Override
  Bytes bytes(byte[] content) {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(DEVICE), Math.max(1, content.length));
    if (content.length > 0) {
      try (Arena arena = Arena.ofConfined()) {
        slab.copyFromHost(0, arena.allocateFrom(ValueLayout.JAVA_BYTE, content));
      }
    }
    return new Bytes() {
      @Override
      public long address() {
        return slab.address();
      }

      @Override
      public byte[] content() {
        byte[] bytes = new byte[content.length];
        slab.copyToHost(0, MemorySegment.ofArray(bytes), bytes.length);
        return bytes;
      }

      @Override
      public void close() {
        slab.release();
      }
    };
  }
}
