// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Adjacent device memory of two allocations: the driver refuses a copy that begins in one
/// allocation and ends in the next one.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class SeamWriteGpuTest {
  /// The size that the driver maps in one piece; it places allocations of this size next to each
  /// other.
  private static final int BYTES = 2 << 20;

  private static final int MAX_ALLOCATIONS = 64;
  private static final int REQUEST = 128 << 10;
  private static final byte[] CONTENT = TestFiles.bytes(61, 2 * BYTES);

  @TempDir Path folder;
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final List<Slab> slabs = new ArrayList<>();
  private final GantrySession gantry = GantrySession.open();
  private Slab first;
  private Slab second;

  @BeforeEach
  void allocateUntilTwoAbut() {
    while (first == null && slabs.size() < MAX_ALLOCATIONS) {
      slabs.add(DeviceSlab.allocate(context, BYTES));
      slabs.sort(Comparator.comparingLong(Slab::address));
      for (int i = 1; i < slabs.size(); i++) {
        if (slabs.get(i - 1).address() + BYTES == slabs.get(i).address()) {
          first = slabs.get(i - 1);
          second = slabs.get(i);
        }
      }
    }
    assumeTrue(first != null, "no two allocations lie next to each other");
    fill(first, 0);
    fill(second, BYTES);
  }

  private void fill(Slab slab, int from) {
    PinnedSlab pinned = PinnedSlab.allocate(context, BYTES);
    MemorySegment.copy(CONTENT, from, pinned.segment(), ValueLayout.JAVA_BYTE, 0, BYTES);
    try (var _ = context.enter()) {
      context
          .driver()
          .copyToDevice(slab.address(), pinned.address(), BYTES, CudaDriver.Stream.DEFAULT);
    }
    context.synchronize();
    pinned.release();
  }

  @AfterEach
  void close() {
    gantry.close();
    Slab.releaseAll(slabs);
  }

  @ParameterizedTest
  @CsvSource({"65536, 65536, STAGED", "65536, 65536,", "5001, 70001, STAGED", "3, 5,"})
  void partsOnBothSidesOfASeamAreWritten(int before, int after, Transport path) {
    Path file = folder.resolve("file");
    List<Source> parts =
        List.of(
            new Region(first, BYTES - before, before).source(),
            new Region(second, 0, after).source());
    WriteOptions options = WriteOptions.defaults().withTransport(path).withRequestBytes(REQUEST);
    WriteReport report = gantry.write(List.of(new NewFile(file, parts)), options);
    assertThat(report.bytes()).isEqualTo(before + after);
    assertThat(WriteContract.read(file))
        .isEqualTo(Arrays.copyOfRange(CONTENT, BYTES - before, BYTES + after));
  }
}
