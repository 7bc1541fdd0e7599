// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Answers;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class OpenFilesTest {
  private static final int MOST = 3;

  @TempDir Path folder;
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final OpenFiles cache = new OpenFiles(this::open, file -> file, MOST);

  private OpenFile open(Location location) {
    SourceFile file = new Stores(calls).open(location, CachePolicy.BUFFERED);
    return new OpenFile(
        file,
        new FileTransport(
            location, file.descriptors(), Device.HOST, null, new CuFileSession(null), false));
  }

  private Location file(int number) {
    Path file = folder.resolve("file" + number);
    return Location.of(file.toFile().exists() ? file : TestFiles.write(file, number, 10));
  }

  private static void touch(OpenFiles.Use use) {
    assertThat(use.file().source().size()).isEqualTo(10);
    use.close();
  }

  private static long openFiles() {
    return LiveResources.snapshot().openFiles();
  }

  @Test
  void theLeastRecentlyUsedFileMakesRoom() {
    IntStream.range(0, MOST).forEach(i -> touch(cache.use(file(i))));
    touch(cache.use(file(0)));
    touch(cache.use(file(MOST)));
    assertThat(openFiles()).isEqualTo(MOST);
    touch(cache.use(file(0)));
    assertThat(calls.count(Function.OPEN)).as("the first was kept").isEqualTo(MOST + 1);
    touch(cache.use(file(1)));
    assertThat(calls.count(Function.OPEN)).as("the second was not").isEqualTo(MOST + 2);
    assertThat(cache.reports())
        .extracting(TransferReport.FileReport::file)
        .containsExactly(file(MOST), file(0), file(1));
    cache.close();
    assertThat(openFiles()).isZero();
  }

  @Test
  void whereNoDescriptorIsLeftFilesThatNothingReadsAreClosed() {
    OpenFiles.Use used = cache.use(file(0));
    touch(cache.use(file(1)));
    calls.at(Function.OPEN, 3, new Fails(Errno.EMFILE));
    touch(cache.use(file(2)));
    assertThat(openFiles()).isEqualTo(2);
    // The cache does not close a file that is in use, so no descriptor becomes free.
    calls.from(Function.OPEN, 5, new Fails(Errno.EMFILE));
    assertThatThrownBy(() -> cache.use(file(1))).hasMessageContaining("EMFILE");
    touch(used);
    cache.close();
  }

  /// Otherwise the file system would seem to have no direct reads.
  @Test
  void theLackOfASecondDescriptorIsNotHidden() {
    calls.at(Function.OPEN, 2, new Fails(Errno.EMFILE));
    assertThatThrownBy(() -> new Stores(calls).open(file(0), CachePolicy.DIRECT))
        .hasMessageContaining("EMFILE");
    assertThat(calls.count(Function.CLOSE)).isEqualTo(1);
  }

  /// Reads one byte of each file, and all files three times in turns.
  private void readThreeTimes(int files) {
    HostSlab slab = HostSlab.allocate(4096);
    TransferOptions options =
        TransferOptions.defaults().withCachePolicy(CachePolicy.BUFFERED).withThreads(1);
    try (TransferEngine engine = new TransferEngine(calls);
        OnDemandTransfer transfer = engine.onDemand(Device.HOST, options, (_, _) -> {});
        OnDemandTransfer.Reader reader = transfer.openReader()) {
      for (int i = 0; i < 3 * files; i++) {
        reader.read(
            new Read(file(i % files), 0, 4096, 1, 0, 0),
            Target.of(slab),
            () -> {},
            Assertions::fail);
      }
    } finally {
      slab.release();
    }
  }

  @Test
  void moreThanSixtyFourFilesStayOpenWhereTheProcessMayHaveThem() {
    calls.from(Function.MAX_DESCRIPTORS, 1, new Answers(1024));
    readThreeTimes(128);
    assertThat(calls.count(Function.OPEN)).isEqualTo(128);
  }

  @Test
  void fewFilesStayOpenWhereTheProcessMayHaveFew() {
    calls.from(Function.MAX_DESCRIPTORS, 1, new Answers(100));
    readThreeTimes(13);
    assertThat(calls.count(Function.OPEN)).isEqualTo(3 * 13);
  }

  @Test
  void aFileInUseStaysOpen() {
    OpenFiles.Use first = cache.use(file(0));
    OpenFiles.Use again = cache.use(file(0));
    IntStream.rangeClosed(1, MOST + 1).forEach(i -> touch(cache.use(file(i))));
    first.close();
    touch(cache.use(file(1)));
    touch(again);
    assertThat(openFiles()).isEqualTo(MOST);
    cache.close();
  }

  @Test
  void moreFilesThanFitMayBeInUse() {
    var uses = IntStream.range(0, MOST + 2).mapToObj(i -> cache.use(file(i))).toList();
    assertThat(openFiles()).isEqualTo(MOST + 2);
    uses.forEach(OpenFilesTest::touch);
    assertThat(openFiles()).isEqualTo(MOST);
    cache.close();
  }

  @Test
  void twoWhoWantAFileAtOnceOpenItOnce() throws Exception {
    Location file = file(0);
    CountDownLatch opening = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    calls
        .at(Function.OPEN, 1, new After(opening::countDown))
        .at(Function.OPEN, 1, new After(() -> await(goOn)));
    try (ExecutorService executor = Executors.newFixedThreadPool(2)) {
      Future<?> one = executor.submit(() -> touch(cache.use(file)));
      await(opening);
      Future<?> two = executor.submit(() -> touch(cache.use(file)));
      // The opening of another file waits for neither thread.
      touch(cache.use(file(1)));
      assertThat(cache.reports()).hasSize(1);
      goOn.countDown();
      one.get();
      two.get();
    }
    assertThat(calls.count(Function.OPEN)).isEqualTo(2);
    cache.close();
  }

  @Test
  void aFileThatCouldNotBeOpenedIsTriedAgain() {
    calls.at(Function.OPEN, 1, new Fails(Errno.EACCES));
    assertThatThrownBy(() -> cache.use(file(0))).isInstanceOf(TransferException.class);
    touch(cache.use(file(0)));
    assertThat(calls.count(Function.OPEN)).isEqualTo(2);
    cache.close();
  }
}
