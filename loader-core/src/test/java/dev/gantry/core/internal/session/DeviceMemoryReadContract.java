// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Reads into the caller's device memory, by a transport that the transfer engine chooses.
abstract class DeviceMemoryReadContract extends MemoryReadContract {
  private final CudaContext context = CudaContext.of(gpu());

  @Override
  Block allocate(int bytes, byte value) {
    CudaDriver driver = context.driver();
    CudaDriver.DeviceMemory memory;
    try (var _ = context.enter()) {
      memory = driver.allocateDevice(bytes);
      driver.fill(memory.address(), value, bytes, CudaDriver.Stream.DEFAULT);
    }
    long address = memory.address();
    return new Block() {
      @Override
      public Memory memory() {
        return new Memory.OnDevice(gpu(), address, bytes);
      }

      @Override
      public byte[] bytes() {
        try (var _ = context.enter();
            Arena arena = Arena.ofConfined()) {
          MemorySegment host = arena.allocate(bytes);
          driver.copyToHost(host.address(), address, bytes);
          return host.toArray(ValueLayout.JAVA_BYTE);
        }
      }

      @Override
      public void close() {
        gantry.freeIdle();
        try (var _ = context.enter()) {
          driver.freeDevice(memory);
        }
      }
    };
  }

  @Test
  void memoryThatIsNotThereIsRefused() {
    Extent extent = new Extent(first, 0, 4096);
    assertThatThrownBy(() ->
            gantry.read(
                List.of(new ReadInto("w", extent, new Memory.OnDevice(gpu(), 4096, 4096))),
                options()))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the memory for w: address 0x1000 is not memory of a CUDA device");
    try (Block block = allocate(1 << 20, (byte) 0)) {
      Memory.OnDevice whole = (Memory.OnDevice) block.memory();
      Memory past = new Memory.OnDevice(gpu(), whole.address() + (1 << 20) - 96, 4096);
      assertThatThrownBy(() -> gantry.read(List.of(new ReadInto("w", extent, past)), options()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("the memory for w reaches 4000 bytes past the end");
      if (context.driver().deviceCount() > 1) {
        Memory elsewhere = new Memory.OnDevice(new Device.Cuda(1), whole.address(), 4096);
        assertThatThrownBy(
                () -> gantry.read(List.of(new ReadInto("w", extent, elsewhere)), options()))
            .isInstanceOf(MisuseException.class)
            .hasMessage("the memory for w is on cuda:0, not on cuda:1");
      }
      assertThat(block.bytes()).containsOnly(0);
    }
  }
}
