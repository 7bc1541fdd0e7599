// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.testing.schedules.Scenario;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Three readers want one block at once, and the first fetch of the block fails. One of them
/// fetches it once more, all get the right bytes, and exactly one call reports that the file is
/// complete.
final class BlockScenario implements Scenario {
  private static final byte[] BYTES = {1, 2, 3, 4, 5, 6, 7};

  private final Path folder;
  private final CachedFile file;

  /// The numbers of all fetches, of successful fetches, and of completions of the file. The
  /// explorer does not switch threads at accesses to array elements.
  private final int[] counts = new int[3];

  BlockScenario() throws IOException {
    folder = Files.createTempDirectory("blocks");
    CacheEntry entry =
        CacheEntry.create(
            FileCalls.ofPlatform(),
            folder.resolve("blocks"),
            folder.resolve("data"),
            BYTES.length,
            false);
    file = new CachedFile("key", new OneEntry(), entry);
  }

  private static final class OneEntry implements EntryFolder {
    @Override
    public String key(WholeFile.Version version) {
      return "key";
    }

    @Override
    public @Nullable CacheEntry find(String key, long size) {
      return null;
    }

    @Override
    public @Nullable CacheEntry open(String key, long size) {
      return null;
    }

    @Override
    public void closed(String key, boolean failed) {}
  }

  @Override
  public List<Work> threads() {
    return List.of(this::read, this::read, this::read);
  }

  /// Works like [FillingFile].
  private void read() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment target = arena.allocate(BYTES.length);
      while (!read(target)) {
        target.fill((byte) 0);
      }
      assertThat(target.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(BYTES);
    }
  }

  /// @return whether `target` has the bytes
  private boolean read(MemorySegment target) {
    return switch (file.take(0, true)) {
      case GOOD -> file.entry().read(target, 0);
      case CHECK -> {
        boolean right = file.isRight(0, target);
        settle(right);
        yield right;
      }
      case FETCH -> {
        boolean good = counts[0]++ > 0;
        if (good) {
          counts[1]++;
          target.copyFrom(MemorySegment.ofArray(BYTES));
          file.entry().put(0, target);
        }
        file.entry().unlock(0);
        settle(good);
        yield good;
      }
      case PASS, WAIT_FOR_OTHERS -> throw new AssertionError("there are no others");
      case WAIT -> {
        var _ = file.settled(0).join();
        yield false;
      }
    };
  }

  private void settle(boolean good) {
    if (file.settle(0, good)) {
      counts[2]++;
    }
  }

  @Override
  public void check() throws IOException {
    boolean whole = file.isWhole();
    file.close();
    Files.delete(folder.resolve("blocks"));
    Files.delete(folder.resolve("data"));
    Files.delete(folder);
    assertThat(whole).isTrue();
    assertThat(counts).as("fetches, good ones, files that became whole").containsExactly(2, 1, 1);
  }
}
