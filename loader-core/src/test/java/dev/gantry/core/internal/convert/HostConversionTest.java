// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

class HostConversionTest extends ConversionContract {
  @Override
  Device device() {
    return Device.HOST;
  }

  @Override
  Bytes bytes(byte[] content) {
    Arena arena = Arena.ofShared();
    MemorySegment memory = arena.allocate(Math.max(1, content.length), 64);
    MemorySegment.copy(content, 0, memory, ValueLayout.JAVA_BYTE, 0, content.length);
    return new Bytes() {
      @Override
      public long address() {
        return memory.address();
      }

      @Override
      public byte[] content() {
        return memory.asSlice(0, content.length).toArray(ValueLayout.JAVA_BYTE);
      }

      @Override
      public void close() {
        arena.close();
      }
    };
  }

  @Test
  void theCallerCancels() {
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    try (Bytes source = bytes(new byte[8]);
        Bytes target = bytes(new byte[16])) {
      Dequantisation.Task task =
          new Dequantisation.Task(plain(DType.F16, 8), List.of(source.address()), target.address());
      assertThatThrownBy(() -> session.convert(List.of(task), Device.HOST, cancellation))
          .isInstanceOf(TransferException.class);
    }
  }

  @Test
  void mistakesAreRefused() {
    assertThatThrownBy(() -> plain(DType.F64, 8))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("the target's dtype must be one of [");
    Dequantisation what = plain(DType.F32, 8);
    assertThatThrownBy(() -> new Dequantisation.Task(what, List.of(4096L), 8194))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the target's address must be a multiple of 4 (was 8194)");
    assertThatThrownBy(() -> new Dequantisation.Task(what, List.of(4096L), 4100))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the target overlaps what it is made of");
    Dequantisation.Indexes first = new Dequantisation.Indexes(0, 0, 1L << 30);
    Dequantisation.Indexes size = new Dequantisation.Indexes(1, 1, 1L << 30);
    assertThatThrownBy(() -> new Dequantisation.Box(first, size))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("the end of a part of a quantised tensor", "(was 2147483648)");
  }
}
