// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.torch.Releases;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The binding on a GPU, with the libtorch in the folder `GANTRY_LIBTORCH`. DJL is not used,
/// because its native library may not fit that libtorch.
@Tag("gpu")
class TorchCudaTest {
  private static final Device.Cuda CUDA = new Device.Cuda(0);
  private static final int ELEMENTS = 100_000;

  @TempDir private Path folder;
  private TorchLibrary torch;

  @BeforeEach
  void findLibtorch() {
    String libtorch = System.getenv("GANTRY_LIBTORCH");
    assumeTrue(libtorch != null, "GANTRY_LIBTORCH names no folder with a libtorch for CUDA");
    torch = TorchLibrary.open(Path.of(libtorch));
  }

  @Test
  void loadedDeviceMemoryIsATensorWithoutACopyUntilItsLastHandleDies() throws IOException {
    Path file = folder.resolve("floats");
    ByteBuffer floats = ByteBuffer.allocate(ELEMENTS * 4).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < ELEMENTS; i++) {
      floats.putFloat(i * 0.5f);
    }
    Files.write(file, floats.array());
    long handle;
    long address;
    try (GantrySession session = GantrySession.open();
        Loaded loaded =
            session.load(
                List.of(new ExtentRequest(new Extent(file, 0, ELEMENTS * 4L), 4)),
                CUDA,
                TransferOptions.defaults())) {
      Region region = loaded.regions().getFirst();
      address = region.address();
      handle = torch.wrap(address, CUDA, DType.F32, TensorShape.of(1000, 100), region.retain());
    }

    assertThat(torch.address(handle)).isEqualTo(address);
    assertThat(torch.dtype(handle)).contains(DType.F32);
    assertThat(torch.device(handle)).isEqualTo(CUDA);
    assertThat(torch.shape(handle)).isEqualTo(TensorShape.of(1000, 100));
    assertThat(torch.strides(handle)).containsExactly(100, 1);
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(1);

    long view = torch.share(handle);
    torch.delete(handle);
    assertThat(LiveResources.snapshot().slabs()).as("held by the view").isEqualTo(1);
    // libtorch's own kernels cast on the device, and its copies move the result.
    long halves = torch.convert(view, DType.BF16, CUDA);
    long onHost = torch.convert(halves, DType.F32, Device.HOST);
    float[] values =
        MemorySegment.ofAddress(torch.address(onHost))
            .reinterpret(ELEMENTS * 4L)
            .toArray(ValueLayout.JAVA_FLOAT);
    assertThat(values[128]).isEqualTo(64f);
    assertThat(values[3]).isEqualTo(1.5f);
    torch.delete(halves);
    torch.delete(onHost);
    torch.delete(view);

    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
    assertThat(Releases.pending()).isZero();
  }

  @Test
  void aThousandTensorsOfOneSlabGiveItBackTogether() throws IOException {
    Path file = folder.resolve("many");
    Files.write(file, new byte[4096 * 1000]);
    List<ExtentRequest> wanted =
        LongStream.range(0, 1000)
            .mapToObj(i -> new ExtentRequest(new Extent(file, i * 4096, 4096), 2))
            .toList();
    long[] handles;
    try (GantrySession session = GantrySession.open();
        Loaded loaded = session.load(wanted, CUDA, TransferOptions.defaults())) {
      handles =
          loaded.regions().stream()
              .mapToLong(region ->
                  torch.wrap(
                      region.address(), CUDA, DType.BF16, TensorShape.of(2048), region.retain()))
              .toArray();
    }
    for (long handle : handles) {
      assertThat(LiveResources.snapshot().deviceBytes()).isPositive();
      torch.delete(handle);
    }

    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void theGeneratorsOfTheCpuAndOfTheGpuGoOnFromWhatWasSaved() {
    for (Device device : List.of(Device.HOST, CUDA)) {
      RandomSource generator = new RandomSource.TorchRandom(torch, device);
      String before = generator.state();
      // The states of both generators begin with the seed.
      byte[] other = Base64.getDecoder().decode(before);
      other[0] ^= 1;
      String changed = Base64.getEncoder().encodeToString(other);

      generator.restore(changed);
      assertThat(generator.state()).isEqualTo(changed).isNotEqualTo(before);
      generator.restore(before);
      assertThat(generator.state()).isEqualTo(before);
    }
    assertThat(Releases.pending()).isZero();
  }

  @Test
  void aGpuThatIsNotThereHasNoGenerator() {
    assertThat(new RandomSource.TorchRandom(torch, new Device.Cuda(127)).absence()).isPresent();
  }

  /// libtorch would end the process for an offset that is no multiple of four.
  @Test
  void anOffsetThatCannotBeIsRefused() {
    RandomSource generator = new RandomSource.TorchRandom(torch, CUDA);
    byte[] bytes = Base64.getDecoder().decode(generator.state());
    bytes[8] |= 2;
    String odd = Base64.getEncoder().encodeToString(bytes);
    assertThatThrownBy(() -> generator.restore(odd)).isInstanceOf(MisuseException.class);
  }
}
