package dev.gantry.core.io;

import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.memory.HostSlab;
import dev.gantry.core.testing.FaultyFileCalls;
import dev.gantry.core.testing.FaultyFileCalls.Fails;
import dev.gantry.core.testing.FaultyFileCalls.Function;
import dev.gantry.core.testing.FaultyFileCalls.Returns;
import dev.gantry.core.testing.FaultyFileCalls.Shortens;
import dev.gantry.core.testing.NoLeaks;
import dev.gantry.core.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// One file, with everything going wrong that can.
@ExtendWith(NoLeaks.class)
class SourceFileTest {
  private static final int LENGTH = 10 * 4096 + 77;
  private static final long SEED = 20261121;

  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);

  @TempDir Path folder;
  private Path path;

  @BeforeEach
  void writeFile() {
    path = TestFiles.write(folder.resolve("weights"), SEED, LENGTH);
  }

  /// Reads the whole file as a plan would: up to the end of its last block.
  private byte[] readAll(CachePolicy policy) {
    try (SourceFile file = SourceFile.open(calls, path, policy)) {
      return readAll(file, LENGTH);
    }
  }

  private static byte[] readAll(SourceFile file, int required) {
    HostSlab slab = HostSlab.allocate(11 * 4096);
    try {
      boolean direct = file.prefersDirect(0, slab.size());
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

  /// The rest starts in mid-block, where `O_DIRECT` would be refused with EINVAL.
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
          try (SourceFile file = SourceFile.open(calls, path, policy)) {
            readAll(file, LENGTH + 5);
          }
        });
    assertThat(failure.failure()).isEqualTo(new Failure.EndOfFile(5));
    assertThat(failure).hasMessageContaining(path + " offset " + LENGTH);
  }

  @Test
  void aFileThatIsNotThere() {
    Path missing = folder.resolve("missing");
    assertThat(failureOf(() -> SourceFile.open(calls, missing, CachePolicy.BUFFERED)))
        .hasMessage("open failed: %s: errno 2 ENOENT: No such file or directory", missing);
  }

  @Test
  void aDirectoryIsNoFile() {
    assertThat(failureOf(() -> SourceFile.open(calls, folder, CachePolicy.BY_RESIDENCY)))
        .hasMessage("open failed: %s: errno 21 EISDIR: Is a directory", folder);
    assertThat(calls.count(Function.CLOSE)).isEqualTo(1);
  }

  /// Tests may run as root, to whom the kernel refuses nothing: so the refusal is made.
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
    try (SourceFile file = SourceFile.open(calls, path, CachePolicy.DIRECT)) {
      assertThat(file.directDescriptor()).isEqualTo(-1);
      assertThat(file.directAbsence()).contains("EINVAL");
      assertThat(file.prefersDirect(0, LENGTH)).isFalse();
      assertThat(readAll(file, LENGTH)).isEqualTo(TestFiles.bytes(SEED, LENGTH));
    }
  }

  /// Some file systems take the flag when a file is opened, and refuse every read.
  @Test
  void directReadsThatAreRefusedGoThroughTheCache() {
    calls.at(Function.PREAD, 1, new Fails(Errno.EINVAL));
    try (SourceFile file = SourceFile.open(calls, path, CachePolicy.DIRECT)) {
      assumeTrue(file.directDescriptor() >= 0, "this file system has no direct reads");
      HostSlab slab = HostSlab.allocate(11 * 4096);
      try {
        assertThat(file.read(slab.segment(), 0, LENGTH, true)).as("went directly").isFalse();
      } finally {
        slab.release();
      }
    }
    assertThat(calls.count(Function.PREAD)).isEqualTo(2);
  }

  @Test
  void withoutCachestatOneByteStandsForItsRequest() {
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.ENOSYS));
    try (SourceFile file = SourceFile.open(calls, path, CachePolicy.BY_RESIDENCY)) {
      assumeTrue(file.directDescriptor() >= 0, "this file system has no direct reads");
      assertThat(file.prefersDirect(0, LENGTH)).as("just written, so hot").isFalse();
      assertThat(calls.count(Function.PREAD_NO_WAIT)).isEqualTo(1);

      calls.at(Function.PREAD_NO_WAIT, 2, new Fails(Errno.EAGAIN));
      assertThat(file.prefersDirect(0, LENGTH)).as("said to be cold").isTrue();
    }
  }

  @Test
  void whereTheCacheCannotBeAskedItIsReadThrough() {
    calls.from(Function.CACHED_BYTES, 1, new Fails(Errno.EOPNOTSUPP));
    try (SourceFile file = SourceFile.open(calls, path, CachePolicy.BY_RESIDENCY)) {
      assertThat(file.prefersDirect(0, LENGTH)).isFalse();
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
    } finally {
      Files.delete(path);
      path = saved;
    }
  }

  @Test
  void misalignedMemoryIsReadThroughTheCache() {
    HostSlab slab = HostSlab.allocate(12 * 4096);
    try (SourceFile file = SourceFile.open(calls, path, CachePolicy.DIRECT)) {
      assertThat(file.read(slab.segment().asSlice(1, LENGTH), 0, LENGTH, true)).isFalse();
      assertThat(slab.segment().asSlice(1, LENGTH).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(TestFiles.bytes(SEED, LENGTH));
    } finally {
      slab.release();
    }
  }

  private SourceFile.Identity identity() {
    try (SourceFile file = SourceFile.open(calls, path, CachePolicy.BUFFERED)) {
      return file.identity();
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
    SourceFile file = SourceFile.open(calls, path, CachePolicy.DIRECT);
    int descriptors = file.directDescriptor() < 0 ? 1 : 2;
    file.close();
    file.close();
    assertThat(calls.count(Function.CLOSE)).isEqualTo(descriptors);
  }
}
