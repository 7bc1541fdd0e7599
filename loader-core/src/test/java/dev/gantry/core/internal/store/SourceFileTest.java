// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.JdkFiles;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.spi.Residency;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Answers;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Returns;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Reads of one file, with every failure that a call may have.
@ExtendWith(NoLeaks.class)
class SourceFileTest {
  private static final int LENGTH = 10 * 4096 + 77;
  private static final int MANY = 1 << 20;
  private static final long SEED = 20261121;

  /// The value of `OVERLAYFS_SUPER_MAGIC` in linux/magic.h; [#TMPFS] is `TMPFS_MAGIC`.
  private static final long OVERLAYFS = 0x794c7630;

  private static final long TMPFS = 0x01021994;

  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);

  @TempDir Path folder;
  private Path path;

  @BeforeEach
  void writeFile() {
    path = TestFiles.write(folder.resolve("weights"), SEED, LENGTH);
  }

  private SourceFile open(Path file, CachePolicy policy) {
    return new Stores(calls).open(Location.of(file), policy);
  }

  private static boolean prefersDirect(SourceFile file, long offset, long length) {
    return file.residency(offset, length) != Residency.HOT;
  }

  /// Reads the whole file up to the end of its last block, as a plan does.
  private byte[] readAll(CachePolicy policy) {
    try (SourceFile file = open(path, policy)) {
      return readAll(file, LENGTH);
    }
  }

  private static byte[] readAll(SourceFile file, int required) {
    HostSlab slab = HostSlab.allocate(11 * 4096);
    try {
      boolean direct = prefersDirect(file, 0, slab.size());
      boolean _ = file.read(slab.segment(), 0, required, direct);
      return Arrays.copyOf(slab.segment().toArray(ValueLayout.JAVA_BYTE), required);
    } finally {
      slab.release();
    }
  }

  private static TransferException failureOf(ThrowingCallable call) {
    return catchThrowableOfType(TransferException.class, call);
  }

  @ParameterizedTest
  @EnumSource
  void everyByteArrives(CachePolicy policy) {
    assertThat(readAll(policy)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
    assertThat(calls.count(Function.PREAD)).isEqualTo(1);
  }

  @ParameterizedTest
  @EnumSource
  void interruptedCallsAreMadeAgain(CachePolicy policy) {
    calls
        .at(Function.OPEN, 1, new Fails(Errno.EINTR))
        .at(Function.OPEN, 3, new Fails(Errno.EINTR))
        .at(Function.PREAD, 1, new Fails(Errno.EINTR))
        .at(Function.PREAD, 2, new Fails(Errno.EINTR));
    assertThat(readAll(policy)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
    assertThat(calls.count(Function.PREAD)).isEqualTo(3);
  }

  @ParameterizedTest
  @ValueSource(longs = {4096, 8192, 12_288})
  void shortDirectReadsGoOnPastTheCache(long most) {
    calls.from(Function.PREAD, 1, new Shortens(most));
    assertThat(readAll(CachePolicy.DIRECT)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
  }

  /// The rest of the read starts in mid-block, where the kernel refuses `O_DIRECT` with EINVAL.
  @ParameterizedTest
  @ValueSource(longs = {1, 511, 512, 4095, 4097, 5000})
  void shortDirectReadsThatEndInMidBlockGoOnThroughTheCache(long count) {
    calls.at(Function.PREAD, 1, new Returns(count));
    assertThat(readAll(CachePolicy.DIRECT)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
    assertThat(calls.count(Function.PREAD)).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void anyMixOfInterruptsAndShortReadsIsOvercome(long seed) {
    calls
        .seeded(Function.PREAD, seed, 3, new Fails(Errno.EINTR))
        .seeded(Function.PREAD, seed, 2, new Shortens(777));
    assertThat(readAll(CachePolicy.BUFFERED))
        .as("seed %s", seed)
        .isEqualTo(TestFiles.bytes(SEED, LENGTH));
  }

  @ParameterizedTest
  @EnumSource
  void anErrorOfTheDiskSaysWhereAndWhat(CachePolicy policy) {
    calls.at(Function.PREAD, 1, new Shortens(8192)).from(Function.PREAD, 2, new Fails(Errno.EIO));
    TransferException failure = failureOf(() -> readAll(policy));
    assertThat(failure.operation()).isEqualTo("pread");
    assertThat(failure.failure()).isEqualTo(new Failure.Errno(5, "EIO", "Input/output error"));
    assertThat(failure)
        .hasMessage(
            "pread failed: %s offset 8192 length 36864: errno 5 EIO: Input/output error", path);
    assertThat(calls.count(Function.PREAD)).as("not tried again").isEqualTo(2);
  }

  @ParameterizedTest
  @EnumSource
  void aFileThatEndsTooSoonIsAnError(CachePolicy policy) {
    TransferException failure =
        failureOf(() -> {
          try (SourceFile file = open(path, policy)) {
            readAll(file, LENGTH + 5);
          }
        });
    assertThat(failure.failure()).isEqualTo(new Failure.EndOfFile(5));
    assertThat(failure).hasMessageContaining(path + " offset " + LENGTH);
  }

  @Test
  void aFileThatIsNotThere() {
    Path missing = folder.resolve("missing");
    assertThat(failureOf(() -> open(missing, CachePolicy.BUFFERED)))
        .hasMessage("open failed: %s: errno 2 ENOENT: No such file or directory", missing);
    assertThat(failureOf(() -> open(Path.of("~/missing"), CachePolicy.BUFFERED)))
        .hasMessageEndingWith("No such file or directory; only shells take ~ for the home folder");
    assertThat(failureOf(() -> open(Path.of("s3://bucket/missing"), CachePolicy.BUFFERED)))
        .hasMessageEndingWith("; a Path holds no URL, and a path of this name begins with ./");
  }

  @Test
  void aDirectoryIsNoFile() {
    assertThat(failureOf(() -> open(folder, CachePolicy.BY_RESIDENCY)))
        .hasMessage("open failed: %s: errno 21 EISDIR: Is a directory", folder);
    assertThat(calls.count(Function.CLOSE)).isEqualTo(1);
  }

  @ParameterizedTest
  @EnumSource
  void aPipeIsRefusedAndNotWaitedFor(CachePolicy policy) throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    for (FileCalls each : List.of(calls, JdkFiles.INSTANCE)) {
      assertThatThrownBy(() -> new Stores(each).open(Location.of(pipe), policy))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining(pipe.toString())
          .hasMessageContaining("a pipe, socket or device");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"/dev/null", "/dev/zero"})
  void aDeviceIsNoFile(Path device) {
    assertThatThrownBy(() -> open(device, CachePolicy.BY_RESIDENCY))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("not-a-regular-file");
  }

  @Test
  void aSocketIsNoFile() throws IOException {
    Path socket = folder.resolve("socket");
    try (ServerSocketChannel bound = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      bound.bind(UnixDomainSocketAddress.of(socket));
      assertThatThrownBy(() -> open(socket, CachePolicy.BY_RESIDENCY))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("not-a-regular-file");
    }
  }

  /// cuFile refuses descriptors with `O_NONBLOCK`, which a file is opened with in case it is a
  /// pipe.
  @Test
  void descriptorsOfFilesHaveNoFlagThatTheyDoNotNeed() throws IOException {
    try (SourceFile file = open(path, CachePolicy.DIRECT)) {
      for (int descriptor : List.of(file.descriptors().buffered(), file.descriptors().direct())) {
        if (descriptor >= 0) {
          String info = Files.readString(Path.of("/proc/self/fdinfo/" + descriptor));
          String flags = info.replaceAll("(?s).*flags:\\s*(\\d+).*", "$1");
          assertThat(Integer.parseInt(flags, 8) & 0x800).as("O_NONBLOCK").isZero();
        }
      }
    }
  }

  /// The test makes the refusal, because it may run as root, to whom the kernel refuses nothing.
  @Test
  void aFileThatMayNotBeRead() {
    calls.at(Function.OPEN, 1, new Fails(Errno.EACCES));
    assertThat(failureOf(() -> readAll(CachePolicy.DIRECT)))
        .hasMessage("open failed: %s: errno 13 EACCES: Permission denied", path);
  }

  @Test
  void aFailingStatLeavesNoDescriptor() {
    calls.at(Function.STAT, 1, new Fails(Errno.EIO));
    assertThat(failureOf(() -> readAll(CachePolicy.DIRECT)))
        .hasMessage("statx failed: %s: errno 5 EIO: Input/output error", path);
  }

  @ParameterizedTest
  @EnumSource
  void aFailingCloseLosesNothing(CachePolicy policy) {
    calls.from(Function.CLOSE, 1, new Fails(Errno.EIO));
    assertThat(readAll(policy)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
  }

  @Test
  void aFileSystemWithoutDirectReadsIsReadThroughTheCache() {
    calls.at(Function.OPEN, 2, new Fails(Errno.EINVAL));
    try (SourceFile file = open(path, CachePolicy.DIRECT)) {
      assertThat(file.descriptors().direct()).isEqualTo(-1);
      assertThat(file.descriptors().directAbsence()).contains("EINVAL");
      assertThat(prefersDirect(file, 0, LENGTH)).isFalse();
      assertThat(readAll(file, LENGTH)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
    }
  }

  /// Some file systems accept `O_DIRECT` at the opening of a file, but refuse every read.
  @Test
  void directReadsThatAreRefusedGoThroughTheCache() {
    calls.at(Function.PREAD, 1, new Fails(Errno.EINVAL));
    try (SourceFile file = open(path, CachePolicy.DIRECT)) {
      assumeTrue(file.descriptors().direct() >= 0, "this file system has no direct reads");
      HostSlab slab = HostSlab.allocate(11 * 4096);
      try {
        assertThat(file.read(slab.segment(), 0, LENGTH, true)).as("went directly").isFalse();
      } finally {
        slab.release();
      }
    }
    assertThat(calls.count(Function.PREAD)).isEqualTo(2);
  }

  /// Opens the file if it can be read past the page cache; otherwise skips the test.
  private SourceFile openToLook() {
    SourceFile file = open(path, CachePolicy.BY_RESIDENCY);
    if (file.descriptors().direct() < 0) {
      file.close();
    }
    assumeTrue(file.descriptors().direct() >= 0, "this file system has no direct reads");
    return file;
  }

  @Test
  void oneQuestionIsAskedForASmallRead() {
    path = TestFiles.write(folder.resolve("large"), SEED, MANY);
    try (SourceFile file = openToLook();
        Arena arena = Arena.ofConfined()) {
      PageCache.keep(path, 0, MANY, arena);
      for (int length : new int[] {1, 4096, 150_000, 256 << 10}) {
        int before = calls.count(Function.CACHED_BYTES);
        assertThat(file.residency(0, length)).isEqualTo(Residency.HOT);
        assertThat(calls.count(Function.CACHED_BYTES)).as("%s", length).isEqualTo(before + 1);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"16384, HOT, 2", "0, COLD, 3"})
  void severalPlacesAreLookedAtForALargeReadUntilTheAnswerIsSure(
      long cached, Residency answer, int calls) {
    path = TestFiles.write(folder.resolve("large"), SEED, MANY);
    this.calls.from(Function.CACHED_BYTES, 1, new Answers(cached));
    try (SourceFile file = openToLook()) {
      assertThat(file.residency(0, MANY)).isEqualTo(answer);
      assertThat(this.calls.count(Function.CACHED_BYTES)).isEqualTo(calls);
    }
  }

  /// The three causes: another user's file that the caller may not write, an old kernel, and a
  /// file system without cachestat.
  @ParameterizedTest
  @EnumSource(names = {"EPERM", "ENOSYS", "EOPNOTSUPP"})
  void whereCachestatRefusesBytesAreReadWithoutWaiting(Errno errno) {
    path = TestFiles.write(folder.resolve("large"), SEED, MANY);
    calls.from(Function.CACHED_BYTES, 1, new Fails(errno));
    try (SourceFile file = openToLook();
        Arena arena = Arena.ofConfined()) {
      PageCache.keep(path, 0, MANY, arena);
      assertThat(file.residency(0, MANY)).isEqualTo(Residency.HOT);
      assertThat(calls.count(Function.PREAD_NO_WAIT)).isEqualTo(2);
      calls.from(Function.PREAD_NO_WAIT, 4, new Fails(Errno.EAGAIN));
      assertThat(file.residency(0, MANY)).as("one of four").isEqualTo(Residency.COLD);
      assertThat(file.residency(0, 4096)).isEqualTo(Residency.COLD);
      assertThat(calls.count(Function.CACHED_BYTES)).as("not asked again").isEqualTo(1);
      assertThat(file.residentBytes()).as("unknown by this means").isEqualTo(-1);
    }
  }

  @Test
  void whereNothingAnswersItIsNotKnownAndNotAskedAgain() {
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.EPERM));
    calls.from(Function.PREAD_NO_WAIT, 1, new Fails(Errno.EOPNOTSUPP));
    try (SourceFile file = openToLook()) {
      for (int i = 0; i < 3; i++) {
        assertThat(file.residency(0, LENGTH)).isEqualTo(Residency.UNKNOWN);
        assertThat(prefersDirect(file, 0, LENGTH)).as("as cold").isTrue();
      }
      assertThat(calls.count(Function.CACHED_BYTES)).isEqualTo(1);
      assertThat(calls.count(Function.PREAD_NO_WAIT)).isEqualTo(1);
    }
  }

  /// cachestat reports 0 pages on overlayfs, whatever the page cache holds.
  @Test
  void onOverlayfsAMappingIsAsked() {
    calls.from(Function.FILE_SYSTEM, 1, new Answers(OVERLAYFS));
    calls.from(Function.CACHED_BYTES, 1, new Answers(0));
    try (SourceFile file = openToLook()) {
      try (Arena arena = Arena.ofConfined()) {
        PageCache.keep(path, 0, LENGTH, arena);
        assertThat(file.residency(4097, 10_000)).isEqualTo(Residency.HOT);
        assertThat(file.residentBytes()).isEqualTo(LENGTH);
      }
      assumeTrue(PageCache.drop(path), "the page cache of this file system cannot be dropped");
      assertThat(file.residency(4097, 10_000)).isEqualTo(Residency.COLD);
      assertThat(file.residentBytes()).isZero();
    }
  }

  /// mincore reports all pages as resident to callers that may not write the file.
  @Test
  void onOverlayfsAFileOfAnotherIsNotKnown() {
    calls.from(Function.FILE_SYSTEM, 1, new Answers(OVERLAYFS));
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.EPERM));
    try (SourceFile file = openToLook()) {
      assertThat(file.residency(0, LENGTH)).isEqualTo(Residency.UNKNOWN);
      assertThat(file.residentBytes()).isEqualTo(-1);
      assertThat(calls.count(Function.MAPPED_BYTES)).isZero();
    }
  }

  @Test
  void aFileInMemoryIsHotWithoutAQuestion() {
    calls.from(Function.FILE_SYSTEM, 1, new Answers(TMPFS));
    try (SourceFile file = open(path, CachePolicy.BY_RESIDENCY)) {
      assertThat(file.inMemory()).isTrue();
      assertThat(file.residency(0, LENGTH)).isEqualTo(Residency.HOT);
      assertThat(file.residentBytes()).isEqualTo(LENGTH);
      assertThat(file.descriptors().directAbsence()).contains("in memory");
      assertThat(calls.count(Function.OPEN)).isEqualTo(1);
      assertThat(calls.count(Function.CACHED_BYTES)).isZero();
    }
  }

  @Test
  void withoutCachestatOneByteStandsForItsRequest() {
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.ENOSYS));
    try (SourceFile file = openToLook();
        Arena arena = Arena.ofConfined()) {
      PageCache.keep(path, 0, LENGTH, arena);
      assertThat(prefersDirect(file, 0, LENGTH)).as("hot").isFalse();
      assertThat(calls.count(Function.PREAD_NO_WAIT)).isEqualTo(1);

      calls.at(Function.PREAD_NO_WAIT, 2, new Fails(Errno.EAGAIN));
      assertThat(prefersDirect(file, 0, LENGTH)).as("said to be cold").isTrue();
    }
  }

  @ParameterizedTest
  @EnumSource
  void aFileSystemInMemory(CachePolicy policy) throws IOException {
    Path memory = Path.of("/dev/shm");
    assumeTrue(Files.isWritable(memory), "no tmpfs");
    Path saved = path;
    path = TestFiles.write(Files.createTempFile(memory, "gantry", ""), SEED, LENGTH);
    try {
      assertThat(readAll(policy)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
      assertThat(calls.count(Function.OPEN)).as("not past a cache that is its home").isEqualTo(1);
      assertThat(calls.count(Function.CACHED_BYTES)).isZero();
    } finally {
      Files.delete(path);
      path = saved;
    }
  }

  @Test
  void misalignedMemoryIsReadThroughTheCache() {
    HostSlab slab = HostSlab.allocate(12 * 4096);
    try (SourceFile file = open(path, CachePolicy.DIRECT)) {
      assertThat(file.read(slab.segment().asSlice(1, LENGTH), 0, LENGTH, true)).isFalse();
      assertThat(slab.segment().asSlice(1, LENGTH).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(TestFiles.bytes(SEED, LENGTH));
    } finally {
      slab.release();
    }
  }

  private SourceFile.Identity identity() {
    try (SourceFile file = open(path, CachePolicy.BUFFERED)) {
      return (SourceFile.Identity) file.identity();
    }
  }

  @Test
  void aFileIsKnownByWhatTheFileSystemSaysOfIt() throws IOException {
    Files.setLastModifiedTime(path, FileTime.from(1_700_000_000_123_456_789L, NANOSECONDS));
    SourceFile.Identity identity = identity();
    assertThat(identity.inode()).isEqualTo(Files.getAttribute(path, "unix:ino"));
    assertThat(identity.size()).isEqualTo(LENGTH);
    assertThat(identity.modifiedNanos()).isEqualTo(1_700_000_000_123_456_789L);
    assertThat(identity()).as("opened again").isEqualTo(identity);
  }

  @Test
  void aFileThatTookAnothersNameIsAnother() throws IOException {
    SourceFile.Identity before = identity();
    Path other = TestFiles.write(folder.resolve("other"), SEED, LENGTH);
    Files.setLastModifiedTime(other, Files.getLastModifiedTime(path));
    Files.move(other, path, StandardCopyOption.REPLACE_EXISTING);
    assertThat(identity().modifiedNanos()).isEqualTo(before.modifiedNanos());
    assertThat(identity()).isNotEqualTo(before);
  }

  /// Otherwise the bytes of the second file would count as bytes of the first file's identity.
  @ParameterizedTest
  @EnumSource(names = {"BY_RESIDENCY", "DIRECT"})
  void aFileThatTakesTheNameDuringTheOpeningIsNotReadInItsPlace(CachePolicy policy)
      throws IOException {
    SourceFile.Identity before = identity();
    Path other = TestFiles.write(folder.resolve("other"), SEED + 1, LENGTH);
    calls.at(Function.OPEN, 3, new After(() -> moveOver(other, path)));
    try (SourceFile file = open(path, policy)) {
      assumeTrue(calls.count(Function.OPEN) == 3, "this file system has no direct reads");
      assertThat(file.identity()).isEqualTo(before);
      HostSlab slab = HostSlab.allocate(11 * 4096);
      try {
        boolean _ = file.read(slab.segment(), 0, LENGTH, true);
        assertThat(Arrays.copyOf(slab.segment().toArray(ValueLayout.JAVA_BYTE), LENGTH))
            .isEqualTo(TestFiles.bytes(SEED, LENGTH));
      } finally {
        slab.release();
      }
    }
    assertThat(readAll(policy)).isEqualTo(TestFiles.bytes(SEED + 1, LENGTH));
  }

  private static void moveOver(Path from, Path to) {
    try {
      Path _ = Files.move(from, to, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void aFileThatWasWrittenToIsNotWhatItWas() throws IOException {
    SourceFile.Identity before = identity();
    Files.setLastModifiedTime(path, FileTime.from(before.modifiedNanos() + 1, NANOSECONDS));
    assertThat(identity()).isNotEqualTo(before);
  }

  @Test
  void filesOfTwoDevicesAreToldApart() throws IOException {
    Path memory = Path.of("/dev/shm");
    assumeTrue(
        Files.isWritable(memory)
            && !Files.getAttribute(memory, "unix:dev").equals(Files.getAttribute(path, "unix:dev")),
        "one device only");
    long device = identity().device();
    Path saved = path;
    path = TestFiles.write(Files.createTempFile(memory, "gantry", ""), SEED, LENGTH);
    try {
      assertThat(identity().device()).isNotEqualTo(device);
    } finally {
      Files.delete(path);
      path = saved;
    }
  }

  @Test
  void closingTwiceClosesOnce() {
    SourceFile file = open(path, CachePolicy.DIRECT);
    int descriptors = file.descriptors().direct() < 0 ? 1 : 2;
    file.close();
    file.close();
    assertThat(calls.count(Function.CLOSE)).isEqualTo(descriptors);
  }
}
