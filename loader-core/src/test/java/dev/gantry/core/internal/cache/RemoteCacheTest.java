// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Reads of remote files through a cache: each byte is fetched once, and the cache keeps its bound.
class RemoteCacheTest extends RemoteCacheFixture {
  @Test
  void eachByteIsFetchedOnce() {
    GantrySession session = session();
    checkLoad(session, file);
    assertThat(dataBytes(1)).isEqualTo(LENGTH);
    checkLoad(session, file);
    assertThat(dataBytes(2)).isEqualTo(LENGTH);
    close(session);
    checkLoad(session(), file);
    assertThat(dataBytes(3)).isEqualTo(LENGTH);
  }

  /// The seal records that the file is on the disk, so it is written after the data was
  /// synchronised, and is synchronised itself.
  @Test
  void aWholeFileAndItsSealReachTheDisk() {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    int[] written = {0};
    calls.at(Function.FSYNC, 2, new After(() -> written[0] = calls.count(Function.PWRITE)));
    GantrySession session = session(calls, ROOM);
    checkLoad(session, file);
    close(session);
    assertThat(calls.count(Function.FSYNC)).isEqualTo(2);
    assertThat(calls.count(Function.PWRITE)).isEqualTo(written[0]);
  }

  @Test
  void aReadFetchesWholeBlocksOnce() {
    try (SourceFile open = session().openFile(file)) {
      checkRead(open, BLOCK + 5, 10);
      assertThat(dataBytes(1)).isEqualTo(BLOCK);
      checkRead(open, 2 * BLOCK - 3, 6);
      assertThat(dataBytes(1)).isEqualTo(2 * BLOCK);
      checkRead(open, BLOCK, 2 * BLOCK);
      checkRead(open, LENGTH - 1, 1);
      assertThat(dataBytes(1)).isEqualTo(2 * BLOCK + 12_345);
      checkRead(open, 0, LENGTH);
      assertThat(dataBytes(1)).isEqualTo(LENGTH);
    }
  }

  @Test
  void aWholeFileOfAKnownVersionNeedsNoRequest() {
    GantrySession session = session();
    checkLoad(session, file);
    Location version;
    try (SourceFile open = session.openFile(file)) {
      version = file.at(open.identity());
    }
    server.answerAll(Answer.FORBIDDEN);
    checkLoad(session, version);
    assertThat(server.requests()).isZero();
  }

  @Test
  void aWholeFileIsLocal() {
    GantrySession session = session();
    try (SourceFile open = session.openFile(file)) {
      assertThat(open.isLocal()).isFalse();
      checkRead(open, 0, LENGTH);
      assertThat(open.isWhole()).isTrue();
      try (SourceFile local = open.local(CachePolicy.BY_RESIDENCY)) {
        checkLocal(local);
        assertThat(local.identity()).isEqualTo(open.identity());
      }
    }
    try (SourceFile again = session().openFile(file)) {
      checkRead(again, 0, LENGTH);
    }
    close(session);
    try (SourceFile sealed = session().openFile(file)) {
      checkLocal(sealed);
    }
    assertThat(dataBytes(3)).isEqualTo(LENGTH);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void manyReadersGetTheirBytesAndEachBlockIsFetchedOnce(long seed)
      throws InterruptedException, ExecutionException {
    GantrySession first = session();
    GantrySession second = session();
    Random random = new Random(seed);
    List<Future<?>> readers = new ArrayList<>();
    try (SourceFile one = first.openFile(file);
        SourceFile same = first.openFile(file);
        SourceFile other = second.openFile(file);
        ExecutorService threads = Executors.newFixedThreadPool(12)) {
      for (int i = 0; i < 60; i++) {
        SourceFile from = List.of(one, same, other).get(i % 3);
        int offset = random.nextInt(LENGTH);
        int length = random.nextInt(LENGTH - offset);
        readers.add(threads.submit(() -> checkRead(from, offset, length)));
      }
      for (Future<?> reader : readers) {
        reader.get();
      }
      checkRead(one, 0, LENGTH);
      checkRead(other, 0, LENGTH);
    }
    assertThat(dataBytes(3)).isEqualTo(LENGTH);
  }

  @Test
  void aChangedFileGetsNewBlocks() {
    GantrySession session = session();
    checkLoad(session, file);
    byte[] changed = TestFiles.bytes(12, LENGTH);
    Location _ = server.put("data", changed);
    assertThat(Arrays.equals(load(session, file, LENGTH), changed)).isTrue();
    assertThat(cachedBytes()).isEqualTo(2 * CacheEntry.cost(LENGTH));
  }

  @Test
  void aFileThatChangesWhileItIsReadIsAnErrorAndNoMixture() {
    GantrySession session = session();
    try (SourceFile open = session.openFile(file)) {
      checkRead(open, 0, 10);
      Location _ = server.put("data", TestFiles.bytes(12, LENGTH));
      checkRead(open, 10, 10);
      assertThatThrownBy(() -> read(open, BLOCK, 10)).hasMessageContaining("changed");
    }
  }

  @Test
  void aFileWhoseStoreFailsToCloseItIsInUseNoMore() {
    StoredFile remote =
        new StoredFile() {
          @Override
          public long size() {
            return LENGTH;
          }

          @Override
          public Object identity() {
            return "one";
          }

          @Override
          public String version() {
            return "one";
          }

          @Override
          public int requestsAtOnce() {
            return 1;
          }

          @Override
          public void read(ReadRequest request) {
            throw new AssertionError("nothing is read");
          }

          @Override
          public void close() {
            throw new IllegalStateException("the store fails");
          }
        };
    try (RemoteCache cache =
        new RemoteCache(Libc.INSTANCE, new CacheSettings(folder, CacheEntry.cost(LENGTH)))) {
      StoredFile open = cache.open((Location.Remote) file, CachePolicy.BUFFERED, () -> remote);
      assertThatThrownBy(open::close).hasMessage("the store fails");
      GantrySession session = session(Libc.INSTANCE, CacheEntry.cost(LENGTH));
      checkLoad(session, file);
      assertThat(cachedBytes()).isEqualTo(CacheEntry.cost(LENGTH));
    }
  }

  @Test
  void filesWithoutAVersionInTextAreNotCached() {
    GantrySession session = session();
    Location memory = MemoryStore.put("cache/data", BYTES);
    checkLoad(session, memory);
    assertThat(cachedBytes()).isZero();
    server.answerAll(Answer.RIGHT);
    assertThat(load(session, server.put("empty", new byte[0]), 0)).isEmpty();
    assertThat(cachedBytes()).isZero();
  }

  @Test
  void theLeastRecentlyUsedFilesGoAndTheBoundHolds() {
    long most = 3 * CacheEntry.cost(LENGTH) + 100;
    GantrySession session = session(Libc.INSTANCE, most);
    List<Location> files = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      Location next = server.put("file" + i, BYTES);
      files.add(next);
      checkLoad(session, next);
      assertThat(cachedBytes()).isLessThanOrEqualTo(most);
      if (i > 0) {
        checkLoad(session, files.getFirst());
      }
    }
    long fetched = server.bytes();
    checkLoad(session, files.getFirst());
    checkLoad(session, files.get(4));
    assertThat(server.bytes()).isEqualTo(fetched + 2);
    checkLoad(session, files.get(1));
    assertThat(server.bytes()).isEqualTo(fetched + 3 + LENGTH);
    assertThat(cachedBytes()).isLessThanOrEqualTo(most);
  }

  @Test
  void aFileInUseStaysAndTheNextIsReadPastTheCache() {
    long most = CacheEntry.cost(LENGTH) + 100;
    GantrySession session = session(Libc.INSTANCE, most);
    GantrySession other = session(Libc.INSTANCE, most);
    Location next = server.put("next", BYTES);
    try (SourceFile open = session.openFile(file)) {
      checkRead(open, 0, 10);
      checkLoad(other, next);
      checkLoad(session, next);
      checkRead(open, 0, LENGTH);
      assertThat(dataBytes(3)).isEqualTo(3 * LENGTH);
    }
    // A file stays in use until it is synchronised; closing the session waits for that.
    close(session);
    checkLoad(other, next);
    checkLoad(other, next);
    assertThat(dataBytes(5)).isEqualTo(4 * LENGTH);
    assertThat(cachedBytes()).isLessThanOrEqualTo(most);
  }

  @Test
  void aFileThatIsLargerThanTheCacheIsNotCached() {
    GantrySession session = session(Libc.INSTANCE, LENGTH);
    checkLoad(session, file);
    assertThat(cachedBytes()).isZero();
  }

  @Test
  void filesOfOthersInTheFolderStay() throws IOException {
    Path foreign = Files.write(folder.resolve("notes.data"), new byte[5000]);
    GantrySession session = session(Libc.INSTANCE, CacheEntry.cost(LENGTH));
    checkLoad(session, file);
    checkLoad(session, server.put("next", BYTES));
    assertThat(foreign).hasSize(5000);
  }

  @Test
  void theSettingsAreChecked() {
    GantrySession session = GantrySession.open();
    sessions.add(session);
    assertThatThrownBy(() -> session.cacheRemoteFiles(folder, 0))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("(was 0)");
    assertThat(CacheSettings.bytes("500GB")).isEqualTo(500_000_000_000L);
    assertThat(CacheSettings.bytes("12345")).isEqualTo(12_345);
    for (String wrong : List.of("much", "0", "0 GB")) {
      assertThatThrownBy(() -> CacheSettings.bytes(wrong))
          .hasMessage(
              "--cache-bytes (GANTRY_CACHE_BYTES) must be a number of bytes, MB, GB or TB, and more"
                  + " than 0 (was "
                  + wrong
                  + ")");
    }
  }
}
