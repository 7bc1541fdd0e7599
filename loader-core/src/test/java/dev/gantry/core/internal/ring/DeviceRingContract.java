// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Further rules for the rings of a device: their copies are ordered with the work that the
/// consumer has queued on the default stream.
abstract class DeviceRingContract extends RingContract {
  private static final int BUSY_BYTES = 4 << 20;

  final CudaContext context = CudaContext.of(new Device.Cuda(0));

  @Override
  Device device() {
    return context.device();
  }

  @Override
  void settle() {
    context.synchronize();
  }

  /// The copies from each batch wait behind earlier copies, and run only after the batch was
  /// closed.
  @Test
  void aSlotIsFilledAgainAfterWhatIsQueuedOnTheDefaultStream() {
    int count = 30;
    Path file = TestFiles.write(folder.resolve("blocks"), 77, count * BLOCK);
    byte[] bytes = TestFiles.bytes(77, count * BLOCK);
    List<DeviceSlab> slabs = new ArrayList<>();
    for (int size : new int[] {BUSY_BYTES, BUSY_BYTES, count * BLOCK}) {
      slabs.add(DeviceSlab.allocate(context, size));
    }
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(count, number -> block(file, number)))) {
      for (int i = 0; i < count; i++) {
        try (RingBatch<Integer> batch = take(ring)) {
          for (int j = 0; j < 20; j++) {
            copy(slabs.get(0).address(), slabs.get(1).address(), BUSY_BYTES);
          }
          long target = slabs.get(2).address() + (long) i * BLOCK;
          copy(target, batch.region(0, BLOCK).address(), BLOCK);
        }
      }
      assertThat(ring.next()).isEmpty();
      context.synchronize();
      byte[] there = TestFiles.bytes(new Region(slabs.get(2), 0, bytes.length));
      assertThat(Arrays.mismatch(there, bytes)).isEqualTo(-1);
    } finally {
      Slab.releaseAll(slabs);
    }
  }

  private void copy(long target, long source, long bytes) {
    try (var _ = context.enter()) {
      context.driver().copyOnDevice(target, source, bytes, CudaDriver.Stream.DEFAULT);
    }
  }
}
