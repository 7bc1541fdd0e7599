// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.JdkFiles;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.OwnFiles;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.PendingReads;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.Latches;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A cache beside servers, disks and files that fail, and reads that are cancelled or whose session is
/// closed: no byte is ever wrong.
@Tag("beside")
class RemoteCacheFaultTest extends RemoteCacheFixture {
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
          .hasMessageContaining("closed while another read fetched this block");
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
}
