// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

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
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Returns;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Reads of one file, with every failure that a call may have.
class SourceFileTest extends SourceFileFixture {
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
    String home = "No such file or directory; only shells take ~ for the home folder";
    assertThat(failureOf(() -> open(Path.of("~/missing"), CachePolicy.BUFFERED)))
        .hasMessageEndingWith(home);
    assertThat(failureOf(() -> SourceFile.Identity.look(Path.of("~/missing"))))
        .hasMessageEndingWith(home);
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

  @Test
  void closingTwiceClosesOnce() {
    SourceFile file = open(path, CachePolicy.DIRECT);
    int descriptors = file.descriptors().direct() < 0 ? 1 : 2;
    file.close();
    file.close();
    assertThat(calls.count(Function.CLOSE)).isEqualTo(descriptors);
  }
}
