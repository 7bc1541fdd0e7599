// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.Sessions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Writes from memory of the CPU, which copy no byte without need.
@Tag("jdk-files")
class HostWriteTest extends WriteContract {
  private static final int BLOCK = 4096;

  @Override
  protected Device device() {
    return Device.HOST;
  }

  @Override
  protected Transport transport() {
    return Transport.HOST;
  }

  /// Records the lengths of writes from the caller's memory, and of writes from copies.
  private static final class Writes extends ForwardingFileCalls {
    private final MemorySegment source;
    private final List<Long> inPlace = new CopyOnWriteArrayList<>();
    private final List<Long> copied = new CopyOnWriteArrayList<>();

    Writes(MemorySegment source) {
      super(Libc.INSTANCE);
      this.source = source;
    }

    @Override
    public long pwrite(int fd, MemorySegment memory, long length, long offset) {
      long from = memory.address() - source.address();
      (from >= 0 && from < source.byteSize() ? inPlace : copied).add(length);
      return super.pwrite(fd, memory, length, offset);
    }
  }

  private Writes written(Path file, long from, long length, boolean pageCache) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(10 * REQUEST, BLOCK).fill((byte) 7);
      Writes writes = new Writes(memory);
      try (GantrySession session = Sessions.over(writes)) {
        WriteReport report =
            session.write(
                List.of(
                    new NewFile(file, List.of(new Memory.OnHost(memory.asSlice(from, length))))),
                options().withPageCache(pageCache).withThreads(1));
        assumeTrue(
            pageCache || report.files().getFirst().reason().isEmpty(),
            "this file system has no direct writes");
      }
      return writes;
    }
  }

  @Test
  void alignedMemoryIsWrittenFromWhereItIs(@TempDir Path target) {
    Writes writes = written(target.resolve("file"), BLOCK, 3L * REQUEST + BLOCK, false);
    assertThat(writes.inPlace)
        .containsExactly((long) REQUEST, (long) REQUEST, (long) REQUEST, (long) BLOCK);
    assertThat(writes.copied).isEmpty();
  }

  @Test
  void onlyTheTailIsCopiedToBePadded(@TempDir Path target) {
    Writes writes = written(target.resolve("file"), 0, 2L * REQUEST + BLOCK + 1, false);
    assertThat(writes.inPlace).containsExactly((long) REQUEST, (long) REQUEST);
    assertThat(writes.copied).containsExactly(2L * BLOCK);
  }

  @Test
  void unalignedMemoryIsCopied(@TempDir Path target) {
    Writes writes = written(target.resolve("file"), 1, 2L * REQUEST, false);
    assertThat(writes.inPlace).isEmpty();
    assertThat(writes.copied).containsExactly((long) REQUEST, (long) REQUEST);
  }

  @Test
  void thePageCacheTakesAnyMemoryFromWhereItIs(@TempDir Path target) {
    Writes writes = written(target.resolve("file"), 1, 2L * REQUEST + 5, true);
    assertThat(writes.inPlace).containsExactly((long) REQUEST, (long) REQUEST, 5L);
    assertThat(writes.copied).isEmpty();
  }
}
