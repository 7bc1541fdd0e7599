// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The functions that wrap memory in libtorch from 2.11 on, with a stand-in in C that records its
/// arguments. Behaviour that only this stand-in has shown counts as unproven until such a libtorch
/// has run it.
class FromBlobTest {
  @TempDir static Path folder;
  private static TorchLibrary torch;
  private final AtomicInteger released = new AtomicInteger();

  @BeforeAll
  static void compileStandIn() throws IOException, InterruptedException {
    Path source = folder.resolve("torch.c");
    try (var text = FromBlobTest.class.getResourceAsStream("torch_from_blob_stand_in.c")) {
      Files.copy(text, source);
    }
    Path library = folder.resolve(System.mapLibraryName("torch_cpu"));
    Process compiler =
        new ProcessBuilder("cc", "-shared", "-fPIC", "-o", library.toString(), source.toString())
            .inheritIO()
            .start();
    assertThat(compiler.waitFor(1, TimeUnit.MINUTES)).isTrue();
    assertThat(compiler.exitValue()).isZero();
    torch = TorchLibrary.open(folder);
  }

  @AfterEach
  void nothingIsLeftBehind() {
    assertThat(Releases.pending()).isZero();
  }

  @Test
  void isChosenWhereThereIsNoDlPack() {
    assertThat(torch.wrapper()).isInstanceOf(FromBlobWrapper.class);
  }

  @Test
  void passesEachArgumentInItsPlace() {
    long handle = wrap(Device.HOST, DType.BF16, TensorShape.of(2, 3, 4));
    assertThat(torch.address(handle)).isEqualTo(0x1000);
    assertThat(torch.dtype(handle)).contains(DType.BF16);
    assertThat(torch.shape(handle)).isEqualTo(TensorShape.of(2, 3, 4));
    assertThat(torch.strides(handle)).containsExactly(12, 4, 1);
    assertThat(torch.device(handle)).isEqualTo(Device.HOST);
    torch.delete(handle);
    assertThat(released).hasValue(1);
  }

  @Test
  void namesTheGpu() {
    long handle = wrap(new Device.Cuda(3), DType.F32, TensorShape.of(2, 5));
    assertThat(torch.device(handle)).isEqualTo(new Device.Cuda(3));
    assertThat(torch.strides(handle)).containsExactly(5, 1);
    torch.delete(handle);
    assertThat(released).hasValue(1);
  }

  @Test
  void aTensorWithoutElementsIsOfTheGpuToo() {
    long handle = wrap(new Device.Cuda(3), DType.BF16, TensorShape.of(0, 5));
    assertThat(released).hasValue(1);
    assertThat(torch.device(handle)).isEqualTo(new Device.Cuda(3));
    assertThat(torch.dtype(handle)).contains(DType.BF16);
    assertThat(torch.shape(handle)).isEqualTo(TensorShape.of(0, 5));
    torch.delete(handle);
    assertThat(released).hasValue(1);
  }

  @Test
  void aRefusalLeavesTheMemoryWithItsOwnerEvenIfTheDeleterRan() {
    // The stand-in calls the deleter and then fails.
    assertThatThrownBy(() -> wrap(Device.HOST, DType.F32, TensorShape.of(13)))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("torch_from_blob")
        .hasMessageContaining("libtorch 1");
    assertThat(released).hasValue(0);
  }

  private long wrap(Device device, DType dtype, TensorShape shape) {
    return torch.wrap(0x1000, device, dtype, shape, released::incrementAndGet);
  }
}
