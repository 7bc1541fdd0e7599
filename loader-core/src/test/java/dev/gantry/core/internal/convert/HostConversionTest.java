// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static org.assertj.core.api.Assertions.assertThat;
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
  void scalesOfPowersOfTwo() {
    MemorySegment codes = MemorySegment.ofArray(new byte[] {0, 1, 127, (byte) 254, (byte) 255});
    assertThat(Codes.scale(codes, DType.F8_E8M0, 0)).isEqualTo(Math.scalb(1f, -127));
    assertThat(Codes.scale(codes, DType.F8_E8M0, 1)).isEqualTo(Float.MIN_NORMAL);
    assertThat(Codes.scale(codes, DType.F8_E8M0, 2)).isEqualTo(1);
    assertThat(Codes.scale(codes, DType.F8_E8M0, 3)).isEqualTo(Math.scalb(1f, 127));
    assertThat(Codes.scale(codes, DType.F8_E8M0, 4)).isNaN();
  }

  @Test
  void theCallerCancels() {
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    try (Bytes source = bytes(new byte[8]);
        Bytes target = bytes(new byte[16])) {
      Conversion.Task task =
          new Conversion.Task(
              Conversion.plain(DType.I8, DType.F16, 8), source.address(), 0, target.address());
      assertThatThrownBy(() -> session.convert(List.of(task), Device.HOST, cancellation))
          .isInstanceOf(TransferException.class);
    }
  }

  @Test
  void mistakesAreRefused() {
    assertThatThrownBy(() -> Conversion.plain(DType.U8, DType.F16, 8))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("the source's dtype must be one of [I8, ")
        .hasMessageContaining("(was U8)");
    assertThatThrownBy(() -> Conversion.plain(DType.I8, DType.F64, 8))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("the target's dtype must be one of [");
    assertThatThrownBy(() -> new Conversion(DType.I8, DType.F16, ScaleGrid.single(1), DType.F64))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("the scales' dtype must be one of [");
    Conversion what = Conversion.plain(DType.I8, DType.F32, 8);
    assertThatThrownBy(() -> new Conversion.Task(what, 4096, 0, 8194))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the target's address must be a multiple of 4 (was 8194)");
    assertThatThrownBy(() -> new Conversion.Task(what, 4096, 0, 4100))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the target overlaps what it is made of");
  }
}
