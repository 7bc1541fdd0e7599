// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The cache entry of one file, while other processes replace and remove entries.
@ExtendWith(NoLeaks.class)
class CacheEntryTest {
  private static final FileCalls CALLS = Libc.INSTANCE;
  private static final int ENTRY_BYTES = 8;

  @TempDir private Path folder;
  private Path blocks;
  private Path data;
  private long size;

  @BeforeEach
  void make() {
    blocks = folder.resolve("one.blocks");
    data = folder.resolve("one.data");
    size = CacheEntry.BLOCK_BYTES + 100L;
    try (CacheEntry made = CacheEntry.create(CALLS, blocks, data, size, false);
        Arena arena = Arena.ofConfined()) {
      made.put(1, arena.allocate(made.bytesOf(1)));
    }
  }

  @Test
  void anEntryThatWasReplacedWhileItWasOpenedIsNotUsed() {
    FileCalls replaced =
        new ForwardingFileCalls(CALLS) {
          @Override
          public int lock(int fd, int kind, long offset, long length) {
            try {
              Path other = Files.copy(blocks, folder.resolve("other"));
              Files.move(other, blocks, StandardCopyOption.REPLACE_EXISTING);
            } catch (IOException e) {
              throw new UncheckedIOException(e);
            }
            return super.lock(fd, kind, offset, length);
          }
        };
    CacheEntry found = CacheEntry.open(replaced, blocks, data, size);
    assertThat(found).isNull();
    CacheEntry.closeIfThere(found);
  }

  @Test
  void aWaitForAProcessThatHasEndedDoesNotCountAgainstTheNext() {
    long minute = 60_000_000_000L;
    AtomicLong now = new AtomicLong();
    CacheEntry ours = Objects.requireNonNull(CacheEntry.open(CALLS, blocks, data, size));
    try (CachedFile file =
            new CachedFile("one", new CacheFolder(CALLS, folder, size), ours, now::get);
        CacheEntry others = Objects.requireNonNull(CacheEntry.open(CALLS, blocks, data, size))) {
      assertThat(others.tryLock(0)).isTrue();
      assertThat(file.take(0, true)).isEqualTo(CachedFile.Turn.WAIT_FOR_OTHERS);
      others.unlock(0);
      assertThat(file.take(0, true)).isEqualTo(CachedFile.Turn.FETCH);
      // The fetch fails.
      ours.unlock(0);
      assertThat(file.settle(0, false)).isFalse();
      now.addAndGet(minute);
      assertThat(others.tryLock(0)).isTrue();
      assertThat(file.take(0, true)).isEqualTo(CachedFile.Turn.WAIT_FOR_OTHERS);
      now.addAndGet(minute);
      assertThat(file.take(0, true)).as("the next takes too long").isEqualTo(CachedFile.Turn.PASS);
    }
  }

  @Test
  void anEntryThatSomeoneHasOpenIsNotRemoved() {
    try (CacheEntry _ =
        Objects.requireNonNull(CacheEntry.open(CALLS, blocks, data, size), "the entry")) {
      assertThat(CacheEntry.remove(CALLS, blocks, data)).isFalse();
    }
    assertThat(CacheEntry.remove(CALLS, blocks, data)).isTrue();
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void aSumIsOfItsOwnBlockOnly() throws IOException {
    try (CacheEntry entry = Objects.requireNonNull(CacheEntry.open(CALLS, blocks, data, size))) {
      assertThat(entry.sum(0)).isEmpty();
      assertThat(entry.sum(1)).isPresent();
      try (FileChannel file =
          FileChannel.open(blocks, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        ByteBuffer last = ByteBuffer.allocate(ENTRY_BYTES);
        assertThat(file.read(last, file.size() - ENTRY_BYTES)).isEqualTo(ENTRY_BYTES);
        assertThat(file.write(last.flip(), file.size() - 2 * ENTRY_BYTES)).isEqualTo(ENTRY_BYTES);
      }
      assertThat(entry.sum(0)).isEmpty();
    }
  }

  /// Its lock keeps other processes from the file that is left.
  @Test
  void theFileOfTheLockIsRemovedLast() {
    FileCalls failing = new FaultyFileCalls(CALLS).at(Function.UNLINK, 2, new Fails(Errno.EIO));
    assertThat(CacheEntry.remove(failing, blocks, data)).isFalse();
    assertThat(folder).isDirectoryContaining(blocks::equals);
    assertThat(CacheEntry.remove(CALLS, blocks, data)).isTrue();
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void anEntryThatCannotBeMadeLeavesNoFile() {
    assertThat(CacheEntry.remove(CALLS, blocks, data)).isTrue();
    FileCalls failing = new FaultyFileCalls(CALLS).at(Function.OPEN, 2, new Fails(Errno.ENOSPC));
    assertThatThrownBy(() -> CacheEntry.create(failing, blocks, data, size, false))
        .isInstanceOf(TransferException.class);
    assertThat(folder).isEmptyDirectory();
  }

  /// A server may state any size, and the first bytes of such a file may be all that is wanted.
  @Test
  void aFileWithMoreBlocksThanCanBeCountedIsReadPastTheCache() {
    StoredFile huge =
        new StoredFile() {
          @Override
          public long size() {
            return CacheEntry.MAX_BYTES + 1;
          }

          @Override
          public Object identity() {
            return "identity";
          }

          @Override
          public String version() {
            return "version";
          }

          @Override
          public int requestsAtOnce() {
            return 1;
          }

          @Override
          public void read(ReadRequest request) {}

          @Override
          public void close() {}
        };
    Location.Remote file = (Location.Remote) Location.of("memory://huge");
    try (RemoteCache cache = new RemoteCache(CALLS, new CacheSettings(folder, 1L << 30))) {
      assertThat(cache.open(file, CachePolicy.BUFFERED, () -> huge)).isSameAs(huge);
    }
  }

  @Test
  void anEntryForWhichTheDiskHasNoRoomLeavesNoFile() {
    for (Function function : List.of(Function.FALLOCATE, Function.FTRUNCATE)) {
      FaultyFileCalls full = new FaultyFileCalls(CALLS).from(function, 1, new Fails(Errno.ENOSPC));
      Path other = folder.resolve("other.blocks");
      assertThatThrownBy(() ->
              CacheEntry.create(full, other, folder.resolve("other.data"), size, true).close())
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("ENOSPC");
      assertThat(folder).isDirectoryNotContaining("glob:**other.*");
    }
  }

  @Test
  void theLastBlockOfAFileOfGigabytesHasWhatIsLeft() {
    long gigabytes = (3L << 30) + 5;
    Path other = folder.resolve("other.blocks");
    try (CacheEntry sparse =
        CacheEntry.create(CALLS, other, folder.resolve("other.data"), gigabytes, false)) {
      assertThat(sparse.bytesOf(3 << 10)).isEqualTo(5);
    }
  }
}
