// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Sessions with a cache in a temporary folder, and a server with one file that they read through it.
@ExtendWith(NoLeaks.class)
@Timeout(60)
abstract class RemoteCacheFixture {
  static final int BLOCK = CacheEntry.BLOCK_BYTES;
  static final int LENGTH = 10 * BLOCK + 12_345;
  static final long SEED = 11;
  static final byte[] BYTES = TestFiles.bytes(SEED, LENGTH);
  static final long ROOM = 1L << 30;

  @TempDir Path folder;

  final RangeServer server = new RangeServer();
  final Location file = server.put("data", BYTES);
  final List<GantrySession> sessions = new ArrayList<>();

  @AfterEach
  void close() {
    sessions.forEach(GantrySession::close);
    server.close();
  }

  GantrySession session() {
    return session(Libc.INSTANCE, ROOM);
  }

  GantrySession session(FileCalls calls, long mostBytes) {
    GantrySession session = GantrySession.open(calls, List.of(new MemoryStore()));
    sessions.add(session);
    session.cacheRemoteFiles(folder, mostBytes);
    return session;
  }

  void close(GantrySession session) {
    session.close();
    sessions.remove(session);
  }

  static byte[] load(GantrySession session, Location file, int length) {
    List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, length), 1));
    try (Loaded loaded = session.load(all, Device.HOST, TransferOptions.defaults())) {
      return TestFiles.bytes(loaded.regions().getFirst());
    }
  }

  static void checkLoad(GantrySession session, Location file) {
    assertThat(Arrays.equals(load(session, file, LENGTH), BYTES)).isTrue();
  }

  static byte[] read(SourceFile file, long offset, int length) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment target = arena.allocate(Math.max(1, length)).asSlice(0, length);
      boolean _ = file.read(target, offset, length, false);
      return target.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  static void checkRead(SourceFile file, int offset, int length) {
    assertThat(read(file, offset, length))
        .isEqualTo(Arrays.copyOfRange(BYTES, offset, offset + length));
  }

  Path only(String suffix) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(path -> path.toString().endsWith(suffix)).findFirst().orElseThrow();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  long cachedBytes() {
    return new CacheFolder(Libc.INSTANCE, folder, ROOM).use().bytes();
  }

  /// Returns how many bytes of data the server sent. Each opening of a file also asks for one byte
  /// to learn the file's version, which does not count.
  long dataBytes(int opens) {
    return server.bytes() - opens;
  }

  static void awaitUninterruptibly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  static void checkLocal(SourceFile local) {
    assertThat(local.isLocal()).isTrue();
    assertThat(local.descriptors().buffered()).isNotNegative();
    assertThat(local.size()).isEqualTo(LENGTH);
    checkRead(local, 0, LENGTH);
  }
}
