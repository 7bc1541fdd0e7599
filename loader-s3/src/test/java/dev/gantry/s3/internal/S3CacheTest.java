// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.s3.testing.FaultProxy;
import dev.gantry.s3.testing.FaultProxy.Answer;
import dev.gantry.s3.testing.S3Server;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Tests objects that a cache on the local disk keeps.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class S3CacheTest {
  private static final int LENGTH = 5_000_003;
  private static final byte[] BYTES = TestFiles.bytes(11, LENGTH);

  @TempDir private Path folder;
  private final S3Server server = S3Server.inMemory();
  private final FaultProxy proxy = new FaultProxy(server.endpoint());
  private final Location object = server.put("shards/shard-00000.bin", BYTES);
  private GantrySession session;

  S3CacheTest() {
    server.pointAt(proxy.endpoint());
    session = GantrySession.open();
  }

  @AfterEach
  void close() {
    session.close();
    proxy.close();
    server.close();
  }

  /// Opens a new session on the same cache folder, as a new process would.
  private void begin() {
    session.close();
    session = GantrySession.open();
    session.cacheRemoteFiles(folder, 1L << 30);
    proxy.answer(_ -> Answer.RIGHT);
  }

  private byte[] read(Function<List<ExtentRequest>, Loaded> how) {
    try (Loaded loaded = how.apply(List.of(new ExtentRequest(new Extent(object, 0, LENGTH), 1)))) {
      byte[] found = new byte[LENGTH];
      loaded.regions().getFirst().copyTo(MemorySegment.ofArray(found));
      return found;
    }
  }

  private byte[] load() {
    return read(wanted -> session.load(wanted, Device.HOST, TransferOptions.defaults()));
  }

  @Test
  void eachByteIsAskedForOnce() {
    begin();
    assertThat(load()).isEqualTo(BYTES);
    assertThat(proxy.ranges()).isPositive();
    for (int epoch = 0; epoch < 2; epoch++) {
      proxy.answer(_ -> Answer.GONE);
      assertThat(load()).isEqualTo(BYTES);
      assertThat(proxy.ranges()).isZero();
    }
    begin();
    proxy.answer(_ -> Answer.GONE);
    assertThat(load()).isEqualTo(BYTES);
    assertThat(proxy.ranges()).isZero();
  }

  @Test
  void aWholeFileIsLocalAndMapped() {
    begin();
    try (SourceFile opened = session.openFile(object)) {
      assertThat(opened.isLocal()).isFalse();
    }
    assertThat(load()).isEqualTo(BYTES);
    proxy.answer(_ -> Answer.GONE);
    try (SourceFile opened = session.openFile(object)) {
      assertThat(opened.isLocal()).isTrue();
      assertThat(opened.isCached()).isTrue();
      assertThat(opened.descriptors().buffered()).isNotNegative();
    }
    assertThat(read(session::map)).isEqualTo(BYTES);
    assertThat(proxy.ranges()).isZero();
  }

  @Test
  void anObjectThatWasReplacedIsFetchedAnew() {
    begin();
    assertThat(load()).isEqualTo(BYTES);
    byte[] other = TestFiles.bytes(12, LENGTH);
    Location _ = server.put("shards/shard-00000.bin", other);
    assertThat(load()).isEqualTo(other);
    begin();
    assertThat(load()).isEqualTo(other);
    assertThat(proxy.ranges()).isZero();
  }
}
