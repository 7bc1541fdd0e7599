// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Returns;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Writes of one new file, with every failure that a call may have.
@ExtendWith(NoLeaks.class)
class TargetFileTest {
  private static final int BLOCKS = 11;
  private static final int LENGTH = BLOCKS * 4096;
  private static final byte[] BYTES = TestFiles.bytes(20261122, LENGTH);

  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);

  @TempDir Path folder;
  private Path path;
  private Path target;
  private HostSlab source;

  @BeforeEach
  void fillSource() {
    path = folder.resolve("temporary");
    target = folder.resolve("weights");
    source = HostSlab.allocate(LENGTH + 4096);
    source.segment().asSlice(0, LENGTH).copyFrom(MemorySegment.ofArray(BYTES));
  }

  @AfterEach
  void freeSource() {
    source.release();
  }

  /// A program that clears away the files of killed saves may take a new file for one of these
  /// before the file is locked.
  @Test
  void aFileThatIsRemovedBeforeItIsHeldIsMadeAnew() {
    List<Path> made = new ArrayList<>();
    FileCalls removing =
        new ForwardingFileCalls(Libc.INSTANCE) {
          @Override
          public int open(Path file, int flags, int mode) {
            made.add(file);
            return super.open(file, flags, mode);
          }

          @Override
          public int lock(int fd, int kind, long offset, long length) {
            if (made.size() == 1) {
              assertThat(unlink(made.getFirst())).isZero();
            }
            return super.lock(fd, kind, offset, length);
          }
        };
    try (TargetFile file = TargetFile.create(removing, target, true, true)) {
      assertThat(file.file()).exists().isEqualTo(made.getLast());
    }
  }

  @Test
  void doesNotReplaceASocketAsADeviceWouldBeReplaced() throws IOException {
    Path socket = folder.resolve("s");
    try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      server.bind(UnixDomainSocketAddress.of(socket));
      Files.createSymbolicLink(target, socket);
      for (Path named : List.of(socket, target)) {
        assertThatThrownBy(() -> TargetFile.create(calls, named, true, true).close())
            .isInstanceOf(MalformedFileException.class)
            .hasMessage(named + ": offset 0: not-a-regular-file: a pipe, socket or device");
      }
    }
    assertThat(folder).isDirectoryNotContaining(TemporaryName::is);
  }

  @Test
  void refusesAFolderBeforeAnythingIsWritten() throws IOException {
    Files.createDirectory(target);
    assertThatThrownBy(() -> TargetFile.create(calls, target, true, true).close())
        .isInstanceOf(TransferException.class)
        .hasMessage("open failed: " + target + ": errno 21 EISDIR: Is a directory");
    assertThat(folder).isDirectoryNotContaining(TemporaryName::is);
  }

  private TargetFile open(boolean pageCache) {
    return new TargetFile(calls, path, target, pageCache);
  }

  private MemorySegment all() {
    return source.segment().asSlice(0, LENGTH);
  }

  private boolean writeAll(boolean pageCache) {
    try (TargetFile file = open(pageCache)) {
      return file.write(all(), 0);
    }
  }

  private static TransferException failureOf(ThrowingCallable call) {
    return catchThrowableOfType(TransferException.class, call);
  }

  private void assertWritten() throws IOException {
    assertThat(Arrays.mismatch(Files.readAllBytes(path), BYTES)).isEqualTo(-1);
  }

  private void assumeDirect() {
    try (TargetFile probe = new TargetFile(Libc.INSTANCE, folder.resolve("probe"), target, false)) {
      assumeTrue(probe.descriptors().direct() >= 0, "this file system has no direct writes");
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void everyByteArrives(boolean pageCache) throws IOException {
    writeAll(pageCache);
    assertWritten();
    assertThat(calls.count(Function.PWRITE)).isEqualTo(1);
  }

  @Test
  void writesPastTheCacheOnlyWhereThatIsWanted() {
    assumeDirect();
    assertThat(writeAll(false)).isTrue();
    path = folder.resolve("another");
    assertThat(writeAll(true)).isFalse();
    assertThat(calls.count(Function.OPEN)).isEqualTo(3);
  }

  /// `fsync` then has little left to write.
  @Test
  void theKernelBeginsToWriteWhatGoesThroughTheCache() {
    List<String> begun = new ArrayList<>();
    FileCalls watched =
        new ForwardingFileCalls(Libc.INSTANCE) {
          @Override
          public int startWriteback(int fd, long offset, long length) {
            begun.add(offset + "+" + length);
            return super.startWriteback(fd, offset, length);
          }
        };
    HostSlab large = HostSlab.allocate(1 << 20);
    try (TargetFile cached = new TargetFile(watched, path, target, true);
        TargetFile direct = new TargetFile(watched, folder.resolve("direct"), target, false)) {
      boolean _ = cached.write(large.segment(), 4096);
      boolean _ = cached.write(all(), 0);
      assertThat(begun).as("not for little").containsExactly("4096+1048576");
      if (direct.write(large.segment(), 0)) {
        assertThat(begun).as("past the cache").hasSize(1);
      }
      cached.sync();
    } finally {
      large.release();
    }
  }

  @Test
  void aFileThatIsThereAlreadyIsLeftAlone() throws IOException {
    Files.writeString(path, "mine");
    assertThat(failureOf(() -> open(false)).failure())
        .isEqualTo(Errno.failure(Errno.EEXIST.code()));
    assertThat(path).hasContent("mine");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void interruptedCallsAreMadeAgain(boolean pageCache) throws IOException {
    for (Function function :
        new Function[] {Function.OPEN, Function.PWRITE, Function.FALLOCATE, Function.FTRUNCATE}) {
      calls.at(function, 1, new Fails(Errno.EINTR)).at(function, 2, new Fails(Errno.EINTR));
    }
    calls.at(Function.OPEN, 4, new Fails(Errno.EINTR));
    try (TargetFile file = open(pageCache)) {
      file.allocate(LENGTH);
      boolean _ = file.write(all(), 0);
      file.truncate(LENGTH);
      assertThat(file.descriptors().direct() >= 0).isEqualTo(file.directAbsence().isEmpty());
    }
    assertWritten();
    assertThat(calls.count(Function.PWRITE)).isEqualTo(3);
    assertThat(calls.count(Function.FALLOCATE)).isEqualTo(3);
    assertThat(calls.count(Function.FTRUNCATE)).isEqualTo(3);
  }

  @ParameterizedTest
  @ValueSource(longs = {4096, 8192, 12_288})
  void shortDirectWritesGoOnPastTheCache(long most) throws IOException {
    assumeDirect();
    calls.from(Function.PWRITE, 1, new Shortens(most));
    assertThat(writeAll(false)).isTrue();
    assertWritten();
  }

  /// The rest of the write starts in mid-block, where the kernel refuses `O_DIRECT` with EINVAL.
  @ParameterizedTest
  @ValueSource(longs = {1, 511, 4095, 4097, 5000})
  void shortDirectWritesThatEndInMidBlockGoOnThroughTheCache(long count) throws IOException {
    calls.at(Function.PWRITE, 1, new Returns(count));
    assertThat(writeAll(false)).as("all of it past the cache").isFalse();
    assertWritten();
    assertThat(calls.count(Function.PWRITE)).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void anyMixOfInterruptsAndShortWritesIsOvercome(long seed) throws IOException {
    calls
        .seeded(Function.PWRITE, seed, 3, new Fails(Errno.EINTR))
        .seeded(Function.PWRITE, seed, 2, new Shortens(777));
    boolean _ = writeAll(true);
    assertThat(Arrays.mismatch(Files.readAllBytes(path), BYTES)).as("seed %s", seed).isEqualTo(-1);
  }

  @ParameterizedTest
  @EnumSource(names = {"EIO", "ENOSPC", "EDQUOT"})
  void anErrorOfTheDiskSaysWhereAndWhat(Errno errno) {
    calls.at(Function.PWRITE, 1, new Shortens(8192)).from(Function.PWRITE, 2, new Fails(errno));
    assertThat(failureOf(() -> writeAll(false)))
        .hasMessage(
            "pwrite failed: %s offset 8192 length 36864: %s",
            target, Errno.failure(errno.code()).describe());
    assertThat(calls.count(Function.PWRITE)).as("not tried again").isEqualTo(2);
  }

  @Test
  void aWriteOfNothingIsAnErrorAndNoEndlessLoop() {
    calls.at(Function.PWRITE, 1, new Shortens(4096)).at(Function.PWRITE, 2, new Returns(0));
    assertThat(failureOf(() -> writeAll(false)).failure())
        .isEqualTo(new Failure.NothingWritten(LENGTH - 4096));
  }

  @Test
  void directWritesThatAreRefusedGoThroughTheCacheFromThenOn() throws IOException {
    assumeDirect();
    calls.at(Function.PWRITE, 1, new Fails(Errno.EINVAL));
    try (TargetFile file = open(false)) {
      assertThat(file.directAbsence()).isEmpty();
      assertThat(file.write(all().asSlice(0, 8192), 0)).isFalse();
      assertThat(file.directAbsence()).contains("pwrite", "EINVAL");
      assertThat(file.write(all().asSlice(8192), 8192)).isFalse();
    }
    assertThat(calls.count(Function.PWRITE)).as("refused once").isEqualTo(3);
    assertWritten();
  }

  @Test
  void anInvalidWriteThroughTheCacheIsAnError() {
    calls.from(Function.PWRITE, 1, new Fails(Errno.EINVAL));
    assertThat(failureOf(() -> writeAll(false)).failure())
        .isEqualTo(Errno.failure(Errno.EINVAL.code()));
  }

  @Test
  void aFileSystemWithoutDirectWritesIsWrittenThroughTheCache() throws IOException {
    calls.at(Function.OPEN, 2, new Fails(Errno.EINVAL));
    try (TargetFile file = open(false)) {
      assertThat(file.descriptors().direct()).isEqualTo(-1);
      assertThat(file.directAbsence()).contains("open", "EINVAL");
      assertThat(file.takes(all().asSlice(1, 17), 3)).as("any memory at any offset").isTrue();
      assertThat(file.write(all(), 0)).isFalse();
    }
    assertWritten();
  }

  @Test
  void directWritesTakeOnlyWhatIsAligned() throws IOException {
    assumeDirect();
    try (TargetFile file = open(false)) {
      assertThat(file.takes(all(), 4096)).isTrue();
      assertThat(file.takes(all().asSlice(1, 4096), 0)).as("address").isFalse();
      assertThat(file.takes(all().asSlice(0, 4097), 0)).as("length").isFalse();
      assertThat(file.takes(all(), 1)).as("offset").isFalse();
      // The file writes such bytes through the page cache.
      assertThat(file.write(all().asSlice(0, 4097), 0)).isFalse();
      assertThat(file.write(all().asSlice(4097), 4097)).isFalse();
    }
    assertWritten();
  }

  @Test
  void anUnknownAlignmentIsThatOfABlock() {
    assumeDirect();
    calls.at(Function.STAT, 1, new Fails(Errno.ENOSYS));
    try (TargetFile file = open(false)) {
      assertThat(file.takes(all(), 4096)).isTrue();
      assertThat(file.takes(all().asSlice(512, 4096), 0)).isFalse();
      assertThat(file.takes(all(), 512)).isFalse();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"EIO", "ENOSPC", "EINTR"})
  void aFailedSyncIsNeverMadeAgain(Errno errno) {
    calls.at(Function.FSYNC, 1, new Fails(errno));
    try (TargetFile file = open(false)) {
      assertThat(failureOf(file::sync))
          .hasMessage("fsync failed: %s: %s", target, Errno.failure(errno.code()).describe());
    }
    assertThat(calls.count(Function.FSYNC)).isEqualTo(1);
  }

  @ParameterizedTest
  @EnumSource(names = {"EOPNOTSUPP", "ENOSYS"})
  void aFileSystemThatCannotAllocateAheadGoesWithout(Errno errno) {
    calls.at(Function.FALLOCATE, 1, new Fails(errno));
    try (TargetFile file = open(false)) {
      assertThatCode(() -> file.allocate(LENGTH)).doesNotThrowAnyException();
    }
  }

  @Test
  void noRoomIsSaidBeforeAnythingIsWritten() {
    calls.at(Function.FALLOCATE, 1, new Fails(Errno.ENOSPC));
    try (TargetFile file = open(false)) {
      assertThat(failureOf(() -> file.allocate(LENGTH)))
          .hasMessage(
              "fallocate failed: %s length %d: errno 28 ENOSPC: No space left on device",
              target, LENGTH);
    }
  }

  @Test
  void roomForNothingIsNotAskedFor() {
    try (TargetFile file = open(false)) {
      file.allocate(0);
    }
    assertThat(calls.count(Function.FALLOCATE)).isZero();
  }

  @Test
  void allocatedRoomIsTrimmed() throws IOException {
    try (TargetFile file = open(false)) {
      file.allocate(LENGTH);
      boolean _ = file.write(all(), 0);
      file.truncate(LENGTH - 77);
      file.sync();
    }
    assertThat(Files.readAllBytes(path)).isEqualTo(Arrays.copyOf(BYTES, LENGTH - 77));
  }

  @Test
  void aTrimThatFails() {
    calls.at(Function.FTRUNCATE, 1, new Fails(Errno.EIO));
    try (TargetFile file = open(false)) {
      assertThat(failureOf(() -> file.truncate(5)))
          .hasMessage("ftruncate failed: %s length 5: errno 5 EIO: Input/output error", target);
    }
  }

  @Test
  void aFailingCloseLosesNothing() throws IOException {
    calls.from(Function.CLOSE, 1, new Fails(Errno.EIO));
    boolean _ = writeAll(false);
    assertWritten();
  }

  @Test
  void closingTwiceClosesOnce() {
    TargetFile file = open(false);
    int descriptors = file.descriptors().direct() < 0 ? 1 : 2;
    file.close();
    file.close();
    assertThat(calls.count(Function.CLOSE)).isEqualTo(descriptors);
  }

  @Test
  void aFileOfThisProcessLikeAnyOther() throws IOException {
    open(false).close();
    String umask =
        Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(line -> line.startsWith("Umask:"))
            .findFirst()
            .orElseThrow()
            .replaceAll("[^0-7]", "");
    int mode = (int) Files.getAttribute(path, "unix:mode") & 0777;
    assertThat(Integer.toOctalString(mode))
        .isEqualTo(Integer.toOctalString(0666 & ~Integer.parseInt(umask, 8)));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aFileSystemInMemory(boolean pageCache) throws IOException {
    Path memory = Path.of("/dev/shm");
    assumeTrue(Files.isWritable(memory), "no tmpfs");
    path = TemporaryName.beside(memory.resolve("weights"), true);
    try (TargetFile file = open(pageCache)) {
      file.allocate(LENGTH);
      boolean _ = file.write(all(), 0);
      file.truncate(LENGTH);
      file.sync();
      assertWritten();
    } finally {
      Files.delete(path);
    }
  }
}
