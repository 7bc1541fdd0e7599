// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class HostSlotTest {
  private static final int STEP = Math.toIntExact(HostSlot.STEP_BYTES);
  private static final int SLOT_BYTES = 7 * STEP;
  private static final int TARGET = 4 * STEP;

  @ParameterizedTest
  @CsvSource({
    "1, 1, 1, 1, 1",
    "4194304, 0, 0, 1, 1",
    "4194305, 0, 0, 1, 2",
    "1048576, 1048576, 1048576, 9, 3",
    "1000, 1001, 1000, 10000, 3",
    "1000, 1000, 1001, 4194, 1",
    "1000, 1000, 1001, 4195, 2",
    "5000000, 5000001, 5000003, 2, 2"
  })
  void copiesAreSharedOut(int rowBytes, int fromPitch, int toPitch, int rows, int pieces) {
    HostSlot slot = new HostSlot(SLOT_BYTES);
    slot.allocateIfNeeded();
    try {
      MemorySegment memory = slot.hostMemory(new HostWrites(0, SLOT_BYTES, List.of()));
      byte[] bytes = TestFiles.bytes(rows, TARGET);
      memory.asSlice(0, TARGET).copyFrom(MemorySegment.ofArray(bytes));
      Copy2D copy = new Copy2D(3, fromPitch, TARGET + 1, toPitch, rowBytes, rows);
      List<BatchWork.Piece> items =
          new ArrayList<>(
              slot.startCopies(
                  new BatchPlan<>(List.of(), HostWrites.NONE, List.of(copy), "label")));
      assertThat(items).hasSize(pieces);
      // The pieces may run in any order.
      Collections.reverse(items);
      items.forEach(item -> ((BatchWork.Piece.Work) item).work().run());

      byte[] expected = new byte[SLOT_BYTES];
      System.arraycopy(bytes, 0, expected, 0, TARGET);
      for (int row = 0; row < rows; row++) {
        System.arraycopy(
            bytes, 3 + row * fromPitch, expected, TARGET + 1 + row * toPitch, rowBytes);
      }
      assertThat(Arrays.mismatch(memory.toArray(ValueLayout.JAVA_BYTE), expected)).isEqualTo(-1);
    } finally {
      slot.release();
    }
  }
}
