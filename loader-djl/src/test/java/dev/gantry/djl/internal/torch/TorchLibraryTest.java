// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TorchLibraryTest {
  private final TorchLibrary torch = Torch.LIBRARY;
  private final AtomicInteger released = new AtomicInteger();

  @AfterEach
  void nothingIsLeftBehind() {
    assertThat(Releases.pending()).isZero();
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void wrapsMemoryOfEachDtypeThatATensorHolds(DType dtype) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(48, 64);
      TensorShape shape = TensorShape.of(2, 3);
      if (PyTorch.dataType(dtype).isEmpty()) {
        assertThatThrownBy(() -> wrap(memory.address(), dtype, shape))
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining(dtype.name());
        assertThat(released).hasValue(0);
        return;
      }
      long handle = wrap(memory.address(), dtype, shape);

      assertThat(torch.address(handle)).isEqualTo(memory.address());
      assertThat(torch.dtype(handle)).contains(dtype);
      assertThat(torch.shape(handle)).isEqualTo(shape);
      assertThat(torch.strides(handle)).containsExactly(3, 1);
      assertThat(torch.device(handle)).isEqualTo(Device.HOST);

      torch.delete(handle);
      assertThat(released).hasValue(1);
    }
  }

  @Test
  void releasesWhenTheLastHandleDies() {
    try (Arena arena = Arena.ofConfined()) {
      long first = wrap(arena.allocate(16, 64).address(), DType.F32, TensorShape.of(4));
      long second = torch.share(first);
      torch.delete(first);
      assertThat(released).hasValue(0);
      torch.delete(second);
      assertThat(released).hasValue(1);
    }
  }

  @Test
  void wrapsAScalar() {
    try (Arena arena = Arena.ofConfined()) {
      long handle = wrap(arena.allocate(8, 64).address(), DType.F64, TensorShape.of());
      assertThat(torch.shape(handle)).isEqualTo(TensorShape.of());
      torch.delete(handle);
    }
    assertThat(released).hasValue(1);
  }

  @Test
  void wrapsNoElementsAtAllAndStillReleases() {
    long handle = wrap(0, DType.BF16, TensorShape.of(3, 0, 2));
    assertThat(torch.shape(handle)).isEqualTo(TensorShape.of(3, 0, 2));
    assertThat(torch.dtype(handle)).contains(DType.BF16);
    torch.delete(handle);
    assertThat(released).hasValue(1);
  }

  @Test
  void aRefusedWrapLeavesTheMemoryWithItsOwner() {
    assertThatThrownBy(() -> wrap(0, DType.F32, TensorShape.of(4)))
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> wrap(0x1001, DType.BF16, TensorShape.of(4)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("0x1001");
    assertThatThrownBy(() -> wrap(64, DType.U8, TensorShape.of(Long.MAX_VALUE, 2)))
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> wrap(64, DType.F64, TensorShape.of(Long.MAX_VALUE / 2)))
        .isInstanceOf(MisuseException.class);
    assertThat(released).hasValue(0);
  }

  @Test
  void aReleaseThatThrowsDoesNotEndTheProcess() {
    long handle =
        torch.wrap(
            0,
            Device.HOST,
            DType.U8,
            TensorShape.of(0),
            () -> {
              released.incrementAndGet();
              throw new AssertionError("thrown on purpose");
            });
    torch.delete(handle);
    assertThat(released).hasValue(1);
  }

  @Test
  void convertsToWhatDjlCannotName() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1.5f, -2f, 3.25f);
      long source = wrap(memory.address(), DType.F32, TensorShape.of(3));
      long converted = torch.convert(source, DType.BF16, Device.HOST);
      short[] bits =
          MemorySegment.ofAddress(torch.address(converted))
              .reinterpret(6)
              .toArray(ValueLayout.JAVA_SHORT);
      assertThat(bits).containsExactly((short) 0x3fc0, (short) 0xc000, (short) 0x4050);
      torch.delete(converted);
      torch.delete(source);
    }
  }

  @Test
  void refusalsOfLibtorchAreExceptionsOfOurs() {
    try (Arena arena = Arena.ofConfined()) {
      long source = wrap(arena.allocate(16, 64).address(), DType.F32, TensorShape.of(4));
      assertThatThrownBy(() -> torch.filled(TensorShape.of(3), DType.F32, Device.HOST, source))
          .isInstanceOf(dev.gantry.core.TransferException.class)
          .hasMessageContaining("aoti_torch_copy_");
      torch.delete(source);
    }
  }

  @Test
  void twentyThousandTensorsAreCheap() {
    try (Arena arena = Arena.ofConfined()) {
      long address = arena.allocate(64, 64).address();
      long[] handles = new long[20_000];
      for (int i = 0; i < handles.length; i++) {
        handles[i] = wrap(address, DType.F32, TensorShape.of(2, 2, 2));
      }
      assertThat(Releases.pending()).isEqualTo(handles.length);
      for (long handle : handles) {
        torch.delete(handle);
      }
    }
    assertThat(released).hasValue(20_000);
  }

  @Test
  void saysWhyAFolderIsNoLibtorch(@TempDir Path folder) throws Exception {
    assertThatThrownBy(() -> TorchLibrary.open(folder))
        .isInstanceOf(DeviceUnavailableException.class)
        .hasMessageContaining("does not exist");
    Files.writeString(folder.resolve(System.mapLibraryName("torch_cpu")), "no library");
    assertThatThrownBy(() -> TorchLibrary.open(folder))
        .isInstanceOf(DeviceUnavailableException.class)
        .hasMessageContaining("cannot be loaded");
  }

  private long wrap(long address, DType dtype, TensorShape shape) {
    return torch.wrap(address, Device.HOST, dtype, shape, released::incrementAndGet);
  }

  @Test
  void anAxisWithoutElementsCountsAsOneInTheStrides() {
    assertThat(TorchCodes.denseStrides(TensorShape.of(2, 0, 3))).containsExactly(3, 3, 1);
  }
}
