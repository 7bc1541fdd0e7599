// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.LiveResources;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("jdk-files")
class HostSnapshotTest extends SnapshotContract {
  private final Arena arena = Arena.ofShared();
  private final List<MemorySegment> segments = new ArrayList<>();

  @Override
  Source source(byte[] bytes) {
    MemorySegment segment = arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
    segments.add(segment);
    return new Memory.OnHost(segment);
  }

  @Override
  void scribble() {
    segments.forEach(segment -> segment.fill((byte) -1));
  }

  @Override
  void closeMemory() {
    arena.close();
  }

  @Override
  SnapshotLimits limits() {
    return SnapshotLimits.DEFAULT;
  }

  @Override
  Device expectedHome() {
    return Device.HOST;
  }

  @Test
  void anEighthOfTheFreeMemoryIsLeftToTheTraining() {
    long bytes = HostMemory.availableBytes().orElseThrow() / 32 * 31;
    // Only the length counts, since nothing is copied.
    MemorySegment much = MemorySegment.ofAddress(1L << 20).reinterpret(bytes);
    NewFile file = new NewFile(Path.of("file"), List.of(new Memory.OnHost(much)));
    try (SnapshotMemory memory = new SnapshotMemory(limits())) {
      assertThat(memory.reserve(List.of(file))).isEmpty();
    }
  }

  private List<NewFile> file(int bytes) {
    return List.of(new NewFile(folder.resolve("file"), List.of(source(new byte[bytes]))));
  }

  @Test
  void snapshotsAtOnceKeepTheLimitTogether() {
    try (SnapshotMemory memory = new SnapshotMemory(new SnapshotLimits(0, 15_000))) {
      try (Snapshot _ = take(memory, file(10_000)).orElseThrow()) {
        assertThat(take(memory, file(10_000))).isEmpty();
      }
      take(memory, file(10_000)).orElseThrow().close();
    }
  }

  @Test
  void aLargerSnapshotGetsTheRoomOfASmallerOne() {
    try (SnapshotMemory memory = new SnapshotMemory(new SnapshotLimits(0, 25_000))) {
      take(memory, file(10_000)).orElseThrow().close();
      take(memory, file(20_000)).orElseThrow().close();
    }
  }

  @Test
  void memoryThatIsTooSmallIsPreparedAnew() {
    try (SnapshotMemory memory = new SnapshotMemory(limits())) {
      take(memory, file(10_000)).orElseThrow().close();
      assertThat(memory.prepare(file(20_000))).isTrue();
      LiveResources.Snapshot held = LiveResources.snapshot();
      try (Snapshot _ = take(memory, file(20_000)).orElseThrow()) {
        assertThat(LiveResources.snapshot()).isEqualTo(held);
      }
    }
  }
}
