// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RecordHeapTest {
  private static final Path FILE = Path.of("file");

  private record Kept(RecordHeap.Entry entry, int length, byte value) {
    /// Returns the record's data, whose bytes are all equal.
    byte[] data() {
      byte[] data = new byte[length];
      Arrays.fill(data, value);
      return data;
    }
  }

  /// At most 1 MiB is kept, in records of up to 100 KB, so the memory is reused many times.
  @Test
  void keepsWhatIsNotRemovedAndUsesTheMemoryOfTheRestAgain() {
    Random random = new Random(11);
    List<Kept> kept = new ArrayList<>();
    long bytes = 0;
    try (RecordHeap heap = new RecordHeap()) {
      for (int i = 0; i < 5000; i++) {
        int length = random.nextInt(10) == 0 ? 0 : random.nextInt(100_000);
        byte[] data = new byte[length];
        Arrays.fill(data, (byte) i);
        StreamRecord record =
            new StreamRecord(
                Location.of(FILE), i, 7L * i, length, MemorySegment.ofArray(data), null);
        kept.add(new Kept(heap.add(record), length, (byte) i));
        bytes += length;
        while (bytes > 1 << 20) {
          Kept gone = kept.remove(random.nextInt(kept.size()));
          heap.remove(gone.entry());
          bytes -= gone.length();
        }
        assertThat(heap.bytes()).isEqualTo(bytes);
        Kept any = kept.get(random.nextInt(kept.size()));
        assertThat(heap.data(any.entry()).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(any.data());
      }
      for (Kept each : kept) {
        assertThat(heap.data(each.entry()).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(each.data());
      }
      assertThat(LiveResources.snapshot().slabs()).isEqualTo(1);
      assertThat(LiveResources.snapshot().hostBytes()).isLessThan(4 << 20);
    }
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  /// The record has fewer bytes than it says, which stands for memory that cannot be had.
  @Test
  void aRecordThatCannotBeKeptIsNotCounted() {
    try (RecordHeap heap = new RecordHeap()) {
      StreamRecord record =
          new StreamRecord(Location.of(FILE), 0, 0, 100, MemorySegment.NULL, null);
      assertThatThrownBy(() -> heap.add(record)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThat(heap.bytes()).isZero();
    }
  }
}
