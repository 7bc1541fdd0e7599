// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.StubControls;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.cufile.CuFileRule;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Rings whose slots' streams do the reads, past the CPU.
@Tag("gpu-stub")
class StreamRingStubTest extends DeviceRingContract {
  private static final int INTERNAL_ERROR = 5030;

  private final StubControls cuFile = StubControls.cuFile();

  @BeforeEach
  void offerDirectReads() {
    cuFile.clear();
    cuFile.direct(true);
  }

  @AfterEach
  void nothingIsLeft() {
    cuFile.direct(false);
    cuFile.clear();
    assertThat(cuFile.count("streams")).isZero();
    assertThat(cuFile.count("disorder")).isZero();
  }

  @Override
  TransferOptions transfer() {
    return super.transfer().withCachePolicy(CachePolicy.DIRECT).withCuFileRule(CuFileRule.STREAMS);
  }

  private Path blocks(int count) {
    return TestFiles.write(folder.resolve("blocks"), 77, count * BLOCK);
  }

  @Test
  void eachSlotsStreamIsRegisteredOnce() {
    Path file = blocks(100);
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(3), new Batches<>(100, number -> block(file, number)))) {
      byte[] bytes = TestFiles.bytes(77, 100 * BLOCK);
      for (int i = 0; i < 100; i++) {
        try (RingBatch<Integer> batch = take(ring)) {
          assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
              .isEqualTo(Arrays.copyOfRange(bytes, i * BLOCK, (i + 1) * BLOCK));
        }
      }
      assertThat(ring.statistics().transfer().bytes(Transport.GDS)).isEqualTo(100 * BLOCK);
      assertThat(cuFile.count("streams")).isEqualTo(3);
    }
    assertThat(cuFile.calls("cuFileReadAsync")).isEqualTo(100);
    assertThat(cuFile.calls("cuFileRead")).isZero();
  }

  @Test
  void aReadThatFailsInTheStreamIsReportedInItsBatchsPlace() {
    Path file = blocks(10);
    cuFile.fail("stream read", 5, -INTERNAL_ERROR, 0);
    try (PrefetchRing<Integer> ring =
        gantry.ring(
            options(2, transfer().withThreads(1)),
            new Batches<>(10, number -> block(file, number)))) {
      for (int i = 0; i < 4; i++) {
        take(ring).close();
      }
      assertThatThrownBy(ring::next)
          .isInstanceOf(TransferException.class)
          .hasMessageContaining(file + " at offset " + 4 * BLOCK)
          .hasMessageContaining("CU_FILE_INTERNAL_ERROR");
    }
  }
}
