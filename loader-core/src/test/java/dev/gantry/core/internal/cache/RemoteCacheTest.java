// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.JdkFiles;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.OwnFiles;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.PendingReads;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.Latches;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Reads of remote files through a cache: each byte is fetched once, and no byte is ever wrong.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class RemoteCacheTest {
  private static final int BLOCK = CacheEntry.BLOCK_BYTES;
  private static final int LENGTH = 10 * BLOCK + 12_345;
  private static final long SEED = 11;
  private static final byte[] BYTES = TestFiles.bytes(SEED, LENGTH);
  private static final long ROOM = 1L << 30;

  /// The number of processes that a test kills while they fill a cache.
  private static final int KILLS = Integer.getInteger("gantry.kills", 2);

  @TempDir private Path folder;

  private final RangeServer server = new RangeServer();
  private final Location file = server.put("data", BYTES);
  private final List<GantrySession> sessions = new ArrayList<>();

  @AfterEach
  void close() {
    sessions.forEach(GantrySession::close);
    server.close();
  }

  private GantrySession session() {
    return session(Libc.INSTANCE, ROOM);
  }

  private GantrySession session(FileCalls calls, long mostBytes) {
    GantrySession session = GantrySession.open(calls, List.of(new MemoryStore()));
    sessions.add(session);
    session.cacheRemoteFiles(folder, mostBytes);
    return session;
  }

  private void close(GantrySession session) {
    session.close();
    sessions.remove(session);
  }

  private static byte[] load(GantrySession session, Location file, int length) {
    List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, length), 1));
    try (Loaded loaded = session.load(all, Device.HOST, TransferOptions.defaults())) {
      return TestFiles.bytes(loaded.regions().getFirst());
    }
  }

  private static void checkLoad(GantrySession session, Location file) {
    assertThat(Arrays.equals(load(session, file, LENGTH), BYTES)).isTrue();
  }

  private static byte[] read(SourceFile file, long offset, int length) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment target = arena.allocate(Math.max(1, length)).asSlice(0, length);
      boolean _ = file.read(target, offset, length, false);
      return target.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  private static void checkRead(SourceFile file, int offset, int length) {
    assertThat(read(file, offset, length))
        .isEqualTo(Arrays.copyOfRange(BYTES, offset, offset + length));
  }

  private Path only(String suffix) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(path -> path.toString().endsWith(suffix)).findFirst().orElseThrow();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private long cachedBytes() {
    return new CacheFolder(Libc.INSTANCE, folder, ROOM).use().bytes();
  }

  /// Returns how many bytes of data the server sent. Each opening of a file also asks for one byte
  /// to learn the file's version, which does not count.
  private long dataBytes(int opens) {
    return server.bytes() - opens;
  }

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

  private static void checkLocal(SourceFile local) {
    assertThat(local.isLocal()).isTrue();
    assertThat(local.descriptors().buffered()).isNotNegative();
    assertThat(local.size()).isEqualTo(LENGTH);
    checkRead(local, 0, LENGTH);
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
  void aFailureIsOneErrorAndIsFetchedAgain() {
    GantrySession session = session();
    server.answer(number -> number == 3 ? Answer.FORBIDDEN : Answer.RIGHT);
    try (SourceFile open = session.openFile(file)) {
      assertThatThrownBy(
              () -> {
                for (int i = 0; i < 10; i++) {
                  checkRead(open, i * BLOCK, BLOCK);
                }
              })
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("403");
      checkRead(open, 0, LENGTH);
    }
    assertThat(dataBytes(1)).isEqualTo(LENGTH);
  }

  @Test
  void blocksThatCameBeforeAnAnswerWasCutAreNotFetchedAgain() {
    try (SourceFile open = session().openFile(file)) {
      server.answer(number -> number == 0 ? Answer.HALF : Answer.FORBIDDEN);
      assertThatThrownBy(() -> read(open, 0, 8 * BLOCK))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("403");
      server.answerAll(Answer.RIGHT);
      long before = server.bytes();
      checkRead(open, 0, 8 * BLOCK);
      assertThat(server.bytes() - before).isEqualTo(4 * BLOCK);
    }
  }

  /// Both readers want the same block; one of them fetches it from a server that does not answer.
  @Test
  void aCancelledReadDoesNotWaitForTheRequestOfAnother() {
    GantrySession session = session();
    try (Arena arena = Arena.ofShared();
        SourceFile one = session.openFile(file);
        SourceFile other = session.openFile(file);
        PendingReads fetching = new PendingReads()) {
      server.answer(_ -> Answer.SILENT);
      fetching.start(one, arena.allocate(BLOCK), 3L * BLOCK, BLOCK, () -> {}, _ -> {});
      try (PendingReads waiting = new PendingReads()) {
        waiting.start(other, arena.allocate(BLOCK), 3L * BLOCK, BLOCK, () -> {}, _ -> {});
      }
    }
  }

  /// The other session fetches the block from a server that does not answer, like a process that
  /// was stopped.
  @Test
  void aReadThatWaitsForAnotherFailsWhenItsSessionIsClosed() throws Exception {
    GantrySession session = session();
    CompletableFuture<Throwable> failure = new CompletableFuture<>();
    try (Arena arena = Arena.ofShared();
        SourceFile theirs = session().openFile(file);
        SourceFile ours = session.openFile(file);
        PendingReads fetching = new PendingReads();
        PendingReads waiting = new PendingReads()) {
      server.answer(_ -> Answer.SILENT);
      fetching.start(theirs, arena.allocate(BLOCK), 3L * BLOCK, BLOCK, () -> {}, _ -> {});
      waiting.start(ours, arena.allocate(BLOCK), 3L * BLOCK, BLOCK, () -> {}, failure::complete);
      close(session);
      assertThat(failure.get())
          .isInstanceOf(TransferException.class)
          .hasMessageContaining("closed while another had this block in hand");
    }
  }

  @Test
  void aCancelledWaitForTheFoldersLockDoesNotTurnTheCacheOff() throws Exception {
    GantrySession session = session();
    int lock =
        OwnFiles.open(Libc.INSTANCE, folder.resolve("lock"), FileCalls.O_RDWR | FileCalls.O_CREAT);
    try {
      assertThat(Libc.INSTANCE.lock(lock, FileCalls.F_WRLCK, 0, 1)).isNotNegative();
      Cancellation cancellation = new Cancellation();
      CompletableFuture<Throwable> ended =
          CompletableFuture.supplyAsync(() ->
              catchThrowable(() ->
                  session
                      .load(
                          List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1)),
                          Device.HOST,
                          TransferOptions.defaults().withCancellation(cancellation))
                      .close()));
      Latches.awaitThat(() -> server.requests() >= 1);
      cancellation.cancel();
      assertThat(((TransferException) ended.get()).failure()).isEqualTo(new Failure.Cancelled());
    } finally {
      int _ = Libc.INSTANCE.close(lock);
    }
    checkLoad(session, file);
    assertThat(cachedBytes()).isEqualTo(CacheEntry.cost(LENGTH));
  }

  @Test
  void aReadAfterItsSessionWasClosedEnds() {
    GantrySession session = session();
    try (SourceFile open = session.openFile(file)) {
      checkRead(open, 0, BLOCK);
      close(session);
      checkRead(open, 10, 100);
      assertThatThrownBy(() -> read(open, BLOCK, BLOCK))
          .isInstanceOf(TransferException.class)
          .hasMessageContaining(file.toString());
    }
  }

  /// The answers arrive after the threads of the cache have ended.
  @Test
  void aReadDuringWhichItsSessionIsClosedEnds() throws InterruptedException, ExecutionException {
    GantrySession session = session();
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    server.answer(number -> {
      if (number > 0) {
        asked.countDown();
        awaitUninterruptibly(goOn);
      }
      return Answer.RIGHT;
    });
    try (SourceFile open = session.openFile(file);
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Future<Object> reader =
          threads.submit(() -> {
            try {
              return read(open, 5, 2 * BLOCK);
            } catch (TransferException e) {
              return e;
            }
          });
      asked.await();
      Future<?> closing = threads.submit(() -> close(session));
      closing.get();
      goOn.countDown();
      Object end = reader.get();
      if (end instanceof byte[] bytes) {
        assertThat(bytes).isEqualTo(Arrays.copyOfRange(BYTES, 5, 5 + 2 * BLOCK));
      } else {
        assertThat((TransferException) end).hasMessageContaining(file.toString());
      }
    }
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private enum Harm {
    FIRST_BYTE {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        put(data, 0, BYTES[0] + 1);
      }
    },
    LAST_BYTE {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        put(data, LENGTH - 1, BYTES[LENGTH - 1] + 1);
      }
    },
    TRUNCATED {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        data.truncate(LENGTH - 1);
      }
    },
    LONGER {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        put(data, LENGTH, 0);
      }
    },
    EMPTY {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        data.truncate(0);
      }
    },
    NO_SUMS {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        blocks.truncate(0);
      }
    },
    HALF_OF_THE_SUMS {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        blocks.truncate(100);
      }
    },
    OTHER_LAYOUT {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        put(blocks, 0, 0);
      }
    },
    /// The state that a crash of the machine may leave: the checksums are on the disk, but the
    /// seal and some bytes are not.
    TORN {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        for (int i = 0; i < 24; i++) {
          put(blocks, 32 + i, 0);
        }
        data.write(ByteBuffer.allocate(3 * BLOCK / 2), BLOCK / 2);
      }
    },
    SUMS_OF_OTHERS {
      @Override
      void to(FileChannel data, FileChannel blocks) throws IOException {
        ByteBuffer sums = ByteBuffer.allocate(16);
        int _ = blocks.read(sums, 64);
        blocks.write(sums.flip(), 80);
        put(data, 3 * BLOCK, BYTES[3 * BLOCK] + 1);
      }
    };

    abstract void to(FileChannel data, FileChannel blocks) throws IOException;

    static void put(FileChannel file, long offset, int value) throws IOException {
      int _ = file.write(ByteBuffer.wrap(new byte[] {(byte) value}), offset);
    }
  }

  @ParameterizedTest
  @EnumSource
  void harmedFilesAreFetchedAgain(Harm harm) throws IOException {
    GantrySession before = session();
    checkLoad(before, file);
    close(before);
    try (FileChannel data = channel(".data");
        FileChannel blocks = channel(".blocks")) {
      harm.to(data, blocks);
    }
    GantrySession session = session();
    checkLoad(session, file);
    assertThat(dataBytes(2)).isGreaterThan(LENGTH);
    long fetched = server.bytes();
    checkLoad(session, file);
    assertThat(server.bytes()).isEqualTo(fetched + 1);
  }

  private FileChannel channel(String suffix) throws IOException {
    return FileChannel.open(only(suffix), StandardOpenOption.READ, StandardOpenOption.WRITE);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 10, 20})
  void readsGoOnPastAFullDisk(int call) {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    calls.from(Function.PWRITE, call, new Fails(Errno.ENOSPC));
    GantrySession session = session(calls, ROOM);
    checkLoad(session, file);
    checkLoad(session, file);
    close(session);
    checkLoad(session(), file);
  }

  @ParameterizedTest
  @EnumSource(
      value = Function.class,
      names = {"OPEN", "PREAD", "PWRITE", "FALLOCATE", "FTRUNCATE", "FSYNC", "STAT", "LOCK"})
  void readsGoOnPastADiskThatFails(Function function) {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    calls.from(function, 1, new Fails(Errno.EIO));
    GantrySession session = session(calls, ROOM);
    checkLoad(session, file);
    checkLoad(session, file);
    close(session);
    checkLoad(session(), file);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void readsGoOnPastADiskThatFailsNowAndThen(long seed) {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    for (Function function :
        List.of(
            Function.PREAD, Function.PWRITE, Function.FALLOCATE, Function.FSYNC, Function.LOCK)) {
      calls.seeded(function, seed, 10, new Fails(Errno.EIO));
    }
    calls.seeded(Function.PWRITE, seed, 3, new FaultyFileCalls.Shortens(4096));
    calls.seeded(Function.PREAD, seed, 3, new Fails(Errno.EINTR));
    GantrySession session = session(calls, ROOM);
    try (SourceFile open = session.openFile(file)) {
      for (int i = 0; i < 3; i++) {
        checkRead(open, 0, LENGTH);
      }
    }
    close(session);
    checkLoad(session(), file);
  }

  /// The disk fails only after the file was opened.
  @Test
  void aWholeFileThatTheDiskNoLongerGivesIsReadPastTheCache() {
    GantrySession before = session();
    checkLoad(before, file);
    close(before);
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    GantrySession session = session(calls, ROOM);
    try (SourceFile whole = session.openFile(file)) {
      checkLocal(whole);
      assertThat(dataBytes(2)).isEqualTo(LENGTH);
      calls.from(Function.PREAD, calls.count(Function.PREAD) + 1, new Fails(Errno.EIO));
      checkRead(whole, 5, BLOCK);
      checkRead(whole, 0, LENGTH);
      assertThat(dataBytes(3)).isEqualTo(2L * LENGTH + BLOCK);
      Location _ = server.put("data", TestFiles.bytes(12, LENGTH));
      assertThatThrownBy(() -> read(whole, 0, 10)).hasMessageContaining("changed");
    }
    Location _ = server.put("data", BYTES);
    checkLoad(session, file);
  }

  @Test
  void readsGoOnWithoutAFolder() throws IOException {
    Path taken = Files.createFile(folder.resolve("taken"));
    GantrySession session = session();
    session.cacheRemoteFiles(taken.resolve("cache"), ROOM);
    checkLoad(session, file);
    assertThat(dataBytes(1)).isEqualTo(LENGTH);
  }

  @Test
  void readsGoOnWhereThereAreNoLocks() {
    GantrySession session = session(JdkFiles.INSTANCE, ROOM);
    checkLoad(session, file);
    assertThat(cachedBytes()).isZero();
  }

  @Test
  void aProcessWithoutDescriptorsCachesAgainWhenItHasSome() {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    calls.at(Function.OPEN, 1, new Fails(Errno.EMFILE));
    GantrySession session = session(calls, ROOM);
    try (SourceFile open = session.openFile(file)) {
      checkRead(open, 0, 10);
    }
    assertThat(cachedBytes()).isZero();
    checkLoad(session, file);
    assertThat(cachedBytes()).isEqualTo(CacheEntry.cost(LENGTH));
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

  /// Both processes fetch blocks, and each reads the blocks that the other has fetched.
  @Test
  @Tag("beside")
  void twoProcessesShareACache() throws IOException, InterruptedException {
    CountDownLatch both = new CountDownLatch(2);
    // Each process gets only the file's version before both have asked for data.
    server.answer(number -> {
      both.countDown();
      if (number > 1) {
        awaitUninterruptibly(both);
      }
      return Answer.RIGHT;
    });
    Process first = CacheProgram.start(folder, file, SEED, LENGTH);
    Process second = CacheProgram.start(folder, file, SEED, LENGTH);
    assertThat(first.waitFor()).isZero();
    assertThat(second.waitFor()).isZero();
    assertThat(dataBytes(2)).isEqualTo(LENGTH);
  }

  /// A process that is stopped keeps its locks on the blocks that it fetches.
  @Test
  @Tag("beside")
  void aStoppedProcessDoesNotStopOthers() throws IOException, InterruptedException {
    CompletableFuture<Process> child = new CompletableFuture<>();
    server.answer(number -> {
      if (number == 1) {
        stop(child.join());
      }
      return Answer.RIGHT;
    });
    child.complete(CacheProgram.start(folder, file, SEED, LENGTH));
    Process stopped = child.join();
    try {
      awaitStopped(stopped);
      GantrySession session = session();
      checkLoad(session, file);
      checkLoad(session, file);
      close(session);
    } finally {
      int _ = stopped.destroyForcibly().waitFor();
    }
    GantrySession after = session();
    checkLoad(after, file);
    long fetched = server.bytes();
    checkLoad(after, file);
    assertThat(server.bytes()).as("all blocks are in the cache").isEqualTo(fetched + 1);
  }

  private static void stop(Process process) {
    try {
      assertThat(new ProcessBuilder("kill", "-STOP", "" + process.pid()).start().waitFor())
          .isZero();
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void awaitStopped(Process process) throws IOException {
    Path status = Path.of("/proc", "" + process.pid(), "stat");
    while (!Files.readString(status).contains(") T ")) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  /// @param request the number of the request for data that starts the countdown to the kill
  /// @param millis the time from that request to the kill
  private void killWhileItFills(long seed, int request, long millis)
      throws IOException, InterruptedException {
    byte[] bytes = TestFiles.bytes(seed, LENGTH);
    Location remote = server.put("data", bytes);
    CompletableFuture<Process> child = new CompletableFuture<>();
    server.answer(number -> {
      if (number == request) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
        Process _ = child.join().destroyForcibly();
      }
      return Answer.RIGHT;
    });
    child.complete(CacheProgram.start(folder, remote, seed, LENGTH));
    int _ = child.join().waitFor();
    server.answerAll(Answer.RIGHT);
    GantrySession session = session();
    assertThat(Arrays.equals(load(session, remote, LENGTH), bytes)).isTrue();
    long fetched = server.bytes();
    assertThat(Arrays.equals(load(session, remote, LENGTH), bytes)).isTrue();
    assertThat(server.bytes()).isEqualTo(fetched + 1);
    close(session);
  }

  @Test
  @Tag("beside")
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  void killedProcessesLeaveNothingWrong() throws IOException, InterruptedException {
    Random random = new Random(SEED);
    for (int kill = 0; kill < KILLS; kill++) {
      // Several requests are in flight: the server answers the others while this one waits.
      int request = 1 + kill % 2;
      killWhileItFills(100 + kill, request, random.nextInt(60));
    }
  }
}
