// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.Latches;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Reads past the CPU into the caller's memory: the memory is registered once for each load, or
/// the read is staged and its reason reported.
@Tag("gpu-stub")
class DirectMemoryReadStubTest extends DeviceMemoryReadContract {
  private final StubControls cuFile = StubControls.cuFile();
  private long wrongBases;

  @BeforeEach
  void directIoIsThere() {
    cuFile.clear();
    cuFile.direct(true);
    wrongBases = cuFile.count("wrong base");
  }

  @AfterEach
  void nothingIsLeft() {
    cuFile.clear();
    cuFile.direct(false);
    gantry.close();
    assertThat(cuFile.count("wrong base")).isEqualTo(wrongBases);
    assertThat(cuFile.count("buffers")).isZero();
    assertThat(cuFile.count("opened")).isZero();
  }

  private TransferOptions direct() {
    return options().withCachePolicy(CachePolicy.DIRECT);
  }

  private ReadInto part(long offset, Memory memory) {
    return new ReadInto("w", new Extent(first, offset, memory.length()), memory);
  }

  @Test
  void memoryIsRegisteredOnceForALoadAndForNoLonger() {
    long freedEarly = StubControls.cuda().count("freed while registered");
    try (Block block = allocate(2 << 20, (byte) 0)) {
      List<ReadInto> parts = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        parts.add(part(i * 20_000L, block.memory().slice(i * 20_000L, 20_000)));
      }
      for (int i = 1; i <= 3; i++) {
        TransferReport report = gantry.read(parts, direct());
        assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
        assertThat(report.files().getFirst().reason()).isEmpty();
        assertThat(cuFile.calls("cuFileBufRegister")).as("as one").isEqualTo(i);
        assertThat(cuFile.count("buffers")).isZero();
        assertThat(LiveResources.snapshot().registrations()).isZero();
      }
    }
    assertThat(StubControls.cuda().count("freed while registered")).isEqualTo(freedEarly);
  }

  @Test
  void memoryIsNotRegisteredAfterALoadThatFailed() {
    try (Block block = allocate(2 << 20, (byte) 0)) {
      cuFile.fail("cuFileRead", 2, -5044, 0);
      TransferOptions asking = direct().withTransport(Transport.GDS).withThreads(1);
      List<ReadInto> parts =
          List.of(
              part(0, block.memory().slice(0, 4096)),
              part(1 << 20, block.memory().slice(4096, 4096)));
      assertThatThrownBy(() -> gantry.read(parts, asking)).hasMessageContaining("CU_FILE_IO_ERROR");
      assertThat(cuFile.calls("cuFileBufRegister")).isPositive();
      assertThat(cuFile.count("buffers")).isZero();
    }
  }

  @Test
  void memoryIsNotRegisteredAfterALoadThatWasCancelled() {
    try (Block block = allocate(2 << 20, (byte) 0)) {
      Cancellation cancellation = new Cancellation();
      TransferOptions cancelling =
          direct()
              .withThreads(1)
              .withCancellation(cancellation)
              .withProgress((_, _) -> {
                Latches.awaitThat(() -> cuFile.calls("cuFileBufRegister") > 0);
                cancellation.cancel();
              });
      List<ReadInto> parts = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        parts.add(part(i * 20_000L, block.memory().slice(i * 20_000L, 4096)));
      }
      assertThatThrownBy(() -> gantry.read(parts, cancelling)).hasMessageContaining("cancelled");
      assertThat(cuFile.count("buffers")).isZero();
      assertThat(LiveResources.snapshot().registrations()).isZero();
    }
  }

  @Test
  void memoryOfAPoolIsStaged() {
    CudaContext context = CudaContext.of(gpu());
    CUstream stream = new CUstream();
    Pointer pooled = new Pointer();
    try (var _ = context.enter()) {
      JCudaDriver.cuMemAllocAsync(pooled, 1 << 20, stream);
    }
    TransferReport report =
        gantry.read(
            List.of(part(0, new Memory.OnDevice(gpu(), pooled.address(), 1 << 20))), direct());
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.STAGED);
    assertThat(report.files().getFirst().reason())
        .isEqualTo("cuFile does not register memory of a stream-ordered pool");
    // The stub's device memory is host memory, so the test reads it directly.
    assertThat(
            MemorySegment.ofAddress(pooled.address())
                .reinterpret(1 << 20)
                .mismatch(MemorySegment.ofArray(TestFiles.bytes(1, 1 << 20))))
        .isEqualTo(-1);
    try (var _ = context.enter()) {
      JCudaDriver.cuMemFreeAsync(pooled, stream);
    }
  }

  @Test
  void cuFileServesMemoryOfAPoolIfItIsAskedFor() {
    CudaContext context = CudaContext.of(gpu());
    CUstream stream = new CUstream();
    Pointer pooled = new Pointer();
    try (var _ = context.enter()) {
      JCudaDriver.cuMemAllocAsync(pooled, 1 << 20, stream);
    }
    TransferReport report =
        gantry.read(
            List.of(part(0, new Memory.OnDevice(gpu(), pooled.address(), 1 << 20))),
            direct().withTransport(Transport.GDS));
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(report.files().getFirst().reason()).isEqualTo("asked for");
    try (var _ = context.enter()) {
      JCudaDriver.cuMemFreeAsync(pooled, stream);
    }
  }

  /// Device memory whose address the test can read.
  private static final class Pointer extends CUdeviceptr {
    long address() {
      return getNativePointer();
    }
  }
}
