// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Rings that cuFile fills past the CPU, on a libcufile that reports that it can.
@Tag("gpu-stub")
class DirectRingStubTest extends DeviceRingContract {
  private static final int EIO = 5;

  private final StubControls cuda = StubControls.cuda();
  private final StubControls cuFile = StubControls.cuFile();
  private long freedWhileRegistered;

  @BeforeEach
  void offerDirectReads() {
    cuFile.clear();
    cuFile.direct(true);
    freedWhileRegistered = cuda.count("freed while registered");
  }

  @AfterEach
  void nothingIsFreedTooEarly() {
    cuFile.direct(false);
    cuFile.clear();
    assertThat(cuda.count("freed while registered")).isEqualTo(freedWhileRegistered);
  }

  @Override
  TransferOptions transfer() {
    return super.transfer().withCachePolicy(CachePolicy.DIRECT);
  }

  private Path blocks(int count) {
    return TestFiles.write(folder.resolve("blocks"), 77, count * BLOCK);
  }

  @Test
  void slotsAreRegisteredOnceAndStaySo() {
    Path file = blocks(100);
    long registrations = cuFile.calls("cuFileBufRegister");
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(3), new Batches<>(100, number -> block(file, number)))) {
      for (int i = 0; i < 100; i++) {
        take(ring).close();
      }
      assertThat(LiveResources.snapshot().registrations()).isEqualTo(3);
      assertThat(ring.statistics().transfer().bytes(Transport.GDS)).isEqualTo(100 * BLOCK);
    }
    assertThat(cuFile.calls("cuFileBufRegister")).isEqualTo(registrations + 3);
    assertThat(cuFile.count("wrong base")).isZero();
  }

  /// No stream orders cuFile's reads behind the work that still uses the memory, so the ring must
  /// wait for this work.
  @Test
  void theFirstBatchesWaitForWhatStillUsesTheirMemory() {
    CudaContext.freeIdle();
    CudaContext context = CudaContext.of(new Device.Cuda(0));
    RingOptions options = options(2);
    DeviceSlab memory = DeviceSlab.allocate(context, options.slotBytes());
    try (var _ = context.enter()) {
      context
          .driver()
          .fill(memory.address(), (byte) 1, options.slotBytes(), CudaDriver.Stream.DEFAULT);
    }
    memory.release();
    Path file = blocks(2);
    byte[] bytes = TestFiles.bytes(77, 2 * BLOCK);
    try (PrefetchRing<Integer> ring =
        gantry.ring(options, new Batches<>(2, number -> block(file, number)))) {
      for (int i = 0; i < 2; i++) {
        try (RingBatch<Integer> batch = take(ring)) {
          assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
              .isEqualTo(Arrays.copyOfRange(bytes, i * BLOCK, (i + 1) * BLOCK));
        }
      }
      assertThat(ring.statistics().transfer().bytes(Transport.GDS)).isEqualTo(2 * BLOCK);
    }
  }

  @Test
  void aFileThatCuFileFailsInMidWayIsStaged() {
    Path file = blocks(100);
    cuFile.fail("cuFileRead", 20, -1, EIO);
    try (PrefetchRing<Integer> ring =
        gantry.ring(
            options(3, transfer().withThreads(1)),
            new Batches<>(100, number -> block(file, number)))) {
      byte[] bytes = TestFiles.bytes(77, 100 * BLOCK);
      for (int i = 0; i < 100; i++) {
        try (RingBatch<Integer> batch = take(ring)) {
          assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
              .isEqualTo(Arrays.copyOfRange(bytes, i * BLOCK, (i + 1) * BLOCK));
        }
      }
      assertThat(ring.statistics().transfer().bytes(Transport.GDS)).isEqualTo(19 * BLOCK);
      assertThat(ring.statistics().transfer().bytes(Transport.STAGED)).isEqualTo(81 * BLOCK);
    }
  }
}
