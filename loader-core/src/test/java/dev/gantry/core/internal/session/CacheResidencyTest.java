// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Whether a file is read past the page cache, by what the page cache holds.
@ExtendWith(NoLeaks.class)
class CacheResidencyTest {
  private static final int LENGTH = 1 << 20;

  @TempDir Path folder;
  private Path file;
  private List<ExtentRequest> wanted;

  @BeforeEach
  void writeFile() {
    file = TestFiles.write(folder.resolve("weights"), 3, LENGTH);
    wanted = List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 8));
    try (SourceFile open =
        new Stores(Libc.INSTANCE).open(Location.of(file), CachePolicy.BY_RESIDENCY)) {
      assumeTrue(open.descriptors().direct() >= 0, open.descriptors().directAbsence());
    }
  }

  private TransferReport load(CachePolicy policy) {
    return load(Libc.INSTANCE, policy);
  }

  private TransferReport load(FileCalls calls, CachePolicy policy) {
    TransferOptions options =
        TransferOptions.defaults()
            .withLimits(PlanLimits.DEFAULT.withRequestBytes(LENGTH / 4))
            .withCachePolicy(policy);
    try (GantrySession gantry = GantrySession.open(calls);
        Loaded loaded = gantry.load(wanted, Device.HOST, options)) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      return loaded.report();
    }
  }

  private void drop() {
    assumeTrue(PageCache.drop(file), "the page cache of this file system cannot be dropped");
  }

  @Test
  void whatIsHotComesFromTheCache() {
    try (Arena arena = Arena.ofConfined()) {
      PageCache.keep(file, 0, LENGTH, arena);
      assertThat(load(CachePolicy.BY_RESIDENCY).directBytes()).isZero();
    }
  }

  @Test
  void whatIsColdComesPastTheCacheAndWhatIsReadAgainThroughIt() {
    drop();
    assertThat(load(CachePolicy.BY_RESIDENCY).directBytes()).isEqualTo(LENGTH);
    // The comparison reads the file through the page cache.
    drop();
    assertThat(load(CachePolicy.BY_RESIDENCY).directBytes()).isZero();
  }

  @Test
  void whatIsHalfHotComesHalfFromTheCache() throws IOException {
    drop();
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
        Arena arena = Arena.ofConfined()) {
      // The half is written, because a read would make more bytes hot by readahead.
      channel.write(ByteBuffer.wrap(TestFiles.bytes(3, LENGTH), 0, LENGTH / 2), 0);
      PageCache.keep(file, 0, LENGTH / 2, arena);
      assertThat(load(CachePolicy.BY_RESIDENCY).directBytes()).isEqualTo(LENGTH / 2);
    }
  }

  @Test
  void whereTheKernelDoesNotSayTheBytesAreCountedAndGoPastTheCache() {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE)
            .from(Function.CACHED_BYTES, 1, new Fails(Errno.EPERM))
            .from(Function.PREAD_NO_WAIT, 1, new Fails(Errno.EOPNOTSUPP));
    TransferReport report = load(calls, CachePolicy.BY_RESIDENCY);
    assertThat(report.unknownBytes()).isEqualTo(LENGTH);
    assertThat(report.directBytes()).isEqualTo(LENGTH);
    assertThat(report.plus(report).unknownBytes()).isEqualTo(2 * LENGTH);
    assertThat(load(CachePolicy.BY_RESIDENCY).unknownBytes()).isZero();
  }

  @Test
  void thePolicyOverrulesTheLook() {
    assertThat(load(CachePolicy.DIRECT).directBytes()).isEqualTo(LENGTH);
    drop();
    assertThat(load(CachePolicy.BUFFERED).directBytes()).isZero();
  }
}
