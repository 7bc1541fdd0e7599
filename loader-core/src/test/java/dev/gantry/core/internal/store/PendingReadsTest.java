// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(NoLeaks.class)
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PendingReadsTest {
  private final Location location = MemoryStore.put("pending/data", new byte[100]);

  private void check(RuntimeException thrown, Class<? extends Throwable> expected, String message) {
    try (Arena arena = Arena.ofShared();
        MemoryStore store = new MemoryStore();
        SourceFile file = new SourceFile(location, store.open(location, CachePolicy.BUFFERED));
        PendingReads reads = new PendingReads(2)) {
      MemorySegment target = arena.allocate(100);
      reads.start(
          file,
          target,
          0,
          100,
          () -> {
            throw thrown;
          });
      assertThatThrownBy(reads::drain).isInstanceOf(expected).hasStackTraceContaining(message);
    }
  }

  @Test
  void whatFailsAfterABlockHasComeFailsTheReads() {
    check(
        new TransferException("copy", "there", new Failure.EndOfFile(1)),
        TransferException.class,
        "copy failed: there");
  }

  @Test
  void aDefectOfWhatFollowsNamesFileAndOffset() {
    check(
        new IndexOutOfBoundsException("out"),
        IllegalStateException.class,
        "reading memory://pending/data at 0");
  }

  /// A ring's reader goes on with other batches.
  @Test
  void aFailureIsOfTheReadsBeforeIt() {
    try (Arena arena = Arena.ofShared();
        MemoryStore store = new MemoryStore();
        SourceFile file = new SourceFile(location, store.open(location, CachePolicy.BUFFERED));
        PendingReads reads = new PendingReads(1)) {
      MemorySegment target = arena.allocate(100);
      reads.start(
          file,
          target,
          0,
          100,
          () -> {
            throw new TransferException("copy", "there", new Failure.EndOfFile(1));
          });
      assertThatThrownBy(reads::drain).isInstanceOf(TransferException.class);
      AtomicBoolean came = new AtomicBoolean();
      reads.start(file, target, 0, 100, () -> came.set(true));
      reads.drain();
      assertThat(came).isTrue();
    }
  }
}
