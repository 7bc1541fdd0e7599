// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.natives.CudaDriver.Event;
import dev.gantry.core.internal.natives.CudaDriver.Stream;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Streams, events, 2-D copies and fills, and their order.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class CudaDriverTest {
  private static final int LENGTH = 1 << 20;
  private static final byte[] BYTES = TestFiles.bytes(5, LENGTH);

  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final CudaDriver driver = context.driver();
  private CudaDriver.Entered entered;
  private DeviceSlab from;
  private DeviceSlab to;
  private PinnedSlab pinned;
  private Stream stream;

  @BeforeEach
  void allocate() {
    from = DeviceSlab.allocate(context, LENGTH);
    to = DeviceSlab.allocate(context, LENGTH);
    pinned = PinnedSlab.allocate(context, LENGTH);
    pinned.segment().copyFrom(MemorySegment.ofArray(BYTES));
    entered = context.enter();
    stream = driver.createStream();
  }

  @AfterEach
  void free() {
    driver.synchronize(stream);
    driver.destroy(stream);
    entered.close();
    pinned.release();
    to.release();
    from.release();
  }

  private byte[] back() {
    driver.copyToHost(pinned.address(), to.address(), LENGTH, stream);
    driver.synchronize(stream);
    return pinned.segment().toArray(ValueLayout.JAVA_BYTE);
  }

  /// The cases include pitches that no allocator of pitched memory would choose.
  @ParameterizedTest
  @CsvSource({
    "0, 1, 0, 1, 1, 1",
    "3, 100, 7, 40, 40, 1000",
    "513, 40, 1, 1001, 33, 777",
    "0, 4096, 4096, 8192, 4096, 100"
  })
  void rowsLandAtTheirPitch(
      int target, int targetPitch, int source, int sourcePitch, int width, int rows) {
    driver.fill(to.address(), (byte) 0xDB, LENGTH, stream);
    driver.copyToDevice(from.address(), pinned.address(), LENGTH, stream);
    driver.copyOnDevice(
        new Copy2D(
            from.address() + source, sourcePitch, to.address() + target, targetPitch, width, rows),
        stream);

    byte[] expected = new byte[LENGTH];
    Arrays.fill(expected, (byte) 0xDB);
    for (int row = 0; row < rows; row++) {
      System.arraycopy(
          BYTES, source + row * sourcePitch, expected, target + row * targetPitch, width);
    }
    assertThat(Arrays.mismatch(back(), expected)).isEqualTo(-1);
  }

  @Test
  void oneStreamWaitsForAnotherOnTheDevice() {
    Stream second = driver.createStream();
    Event copied = driver.createBlockingSyncEvent();
    driver.copyToDevice(from.address(), pinned.address(), LENGTH, second);
    driver.record(copied, second);
    driver.await(stream, copied);
    driver.copyOnDevice(to.address(), from.address(), LENGTH, stream);

    assertThat(Arrays.mismatch(back(), BYTES)).isEqualTo(-1);
    assertThat(driver.isDone(copied)).isTrue();
    driver.destroy(copied);
    driver.destroy(second);
  }

  @Test
  void theDefaultStreamCanBeWaitedFor() {
    Event event = driver.createEvent();
    driver.await(stream, event);
    assertThat(driver.isDone(event)).as("never recorded").isTrue();
    driver.copyToDevice(from.address(), pinned.address(), LENGTH, Stream.DEFAULT);
    driver.copyOnDevice(to.address(), from.address(), LENGTH, Stream.DEFAULT);
    driver.record(event, Stream.DEFAULT);
    driver.await(stream, event);

    assertThat(Arrays.mismatch(back(), BYTES)).isEqualTo(-1);
    driver.synchronize(event);
    driver.destroy(event);
  }
}
