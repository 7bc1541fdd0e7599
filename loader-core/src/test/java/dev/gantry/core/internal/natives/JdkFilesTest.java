// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JdkFilesTest {
  private final FileCalls calls = JdkFiles.INSTANCE;
  @TempDir Path folder;

  private static int code(Errno errno) {
    return -errno.code();
  }

  /// On other systems the C library is another one, or lacks these functions.
  @Test
  void nothingOfLibcIsLoadedWhereTheJdkReads() throws Exception {
    Path log = folder.resolve("classes");
    Process process =
        ChildJvm.command(
                List.of("-Dgantry.files=jdk", "-Xlog:class+load:file=" + log),
                JdkFilesProgram.class,
                folder)
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    assertThat(output).contains("the JDK's file channels have no descriptor");
    try (Stream<String> lines = Files.lines(log)) {
      List<String> ours = lines.filter(line -> line.contains(".natives.")).toList();
      assertThat(ours).anyMatch(line -> line.contains("JdkFiles "));
      assertThat(ours).noneMatch(line -> line.contains("Libc"));
    }
  }

  @Test
  void errorsAreTheKernels() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    Path full = Files.createDirectories(folder.resolve("full/inside")).getParent();
    int write = FileCalls.O_RDWR | FileCalls.O_CREAT | FileCalls.O_EXCL;
    for (FileCalls each : List.of(calls, Libc.INSTANCE)) {
      assertThat(each.open(folder.resolve("missing"), FileCalls.O_RDONLY, 0))
          .isEqualTo(code(Errno.ENOENT));
      assertThat(each.open(file, write, 0666)).isEqualTo(code(Errno.EEXIST));
      assertThat(each.open(folder, FileCalls.O_RDWR, 0)).isEqualTo(code(Errno.EISDIR));
      assertThat(each.unlink(folder.resolve("missing"))).isEqualTo(code(Errno.ENOENT));
      assertThat(each.unlink(folder)).isEqualTo(code(Errno.EISDIR));
      assertThat(each.rmdir(full)).isEqualTo(code(Errno.ENOTEMPTY));
      assertThat(each.rmdir(file)).isEqualTo(code(Errno.ENOTDIR));
      assertThat(each.mkdir(full, 0777)).isEqualTo(code(Errno.EEXIST));
      assertThat(each.rename(folder.resolve("missing"), file)).isEqualTo(code(Errno.ENOENT));
      assertThat(each.close(1 << 25)).isEqualTo(code(Errno.EBADF));
    }
  }

  @Test
  void whatTheyCannotTheySay() {
    int descriptor = calls.open(TestFiles.write(folder.resolve("file"), 1, 10), 0, 0);
    assertThat(calls.open(folder.resolve("file"), calls.directFlag(), 0))
        .isEqualTo(code(Errno.EINVAL));
    assertThat(calls.fallocate(descriptor, 0, 0, 10)).isEqualTo(code(Errno.EOPNOTSUPP));
    assertThat(calls.cachedBytes(descriptor, 0, 10)).isNegative();
    assertThat(calls.descriptorAbsence()).isNotEmpty();
    assertThat(calls.close(descriptor)).isZero();
  }

  @Test
  void filesAreWrittenTrimmedRenamedAndRead() throws IOException {
    byte[] bytes = TestFiles.bytes(2, 5000);
    Path file = folder.resolve("made");
    int made = calls.open(file, FileCalls.O_RDWR | FileCalls.O_CREAT | FileCalls.O_EXCL, 0666);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
      assertThat(calls.pwrite(made, memory, 5000, 0)).isEqualTo(5000);
      assertThat(calls.ftruncate(made, 4000)).isZero();
      assertThat(calls.fsync(made)).isZero();
      assertThat(calls.rename(file, folder.resolve("named"))).isZero();
      memory.fill((byte) 0);
      assertThat(calls.pread(made, memory, 5000, 1000)).isEqualTo(3000);
      assertThat(calls.pread(made, memory.asSlice(4000), 1000, 4000)).isZero();
      assertThat(Arrays.copyOf(memory.toArray(ValueLayout.JAVA_BYTE), 3000))
          .isEqualTo(Arrays.copyOfRange(bytes, 1000, 4000));
      assertThat(calls.ftruncate(made, 6000)).isZero();
      assertThat(calls.stat(made).size()).isEqualTo(6000);
    }
    assertThat(calls.close(made)).isZero();
    int opened = calls.open(folder, FileCalls.O_RDONLY, 0);
    assertThat(calls.stat(opened).directory()).isTrue();
    assertThat(calls.fsync(opened)).isZero();
    assertThat(calls.close(opened)).isZero();
  }

  @Test
  void anInterruptedThreadReadsOn() {
    int descriptor = calls.open(TestFiles.write(folder.resolve("file"), 1, 10), 0, 0);
    try (Arena arena = Arena.ofConfined()) {
      Thread.currentThread().interrupt();
      assertThat(calls.pread(descriptor, arena.allocate(10), 10, 0)).isEqualTo(10);
      assertThat(Thread.interrupted()).isTrue();
      assertThat(calls.pread(descriptor, arena.allocate(10), 10, 0)).isEqualTo(10);
    }
    assertThat(calls.close(descriptor)).isZero();
  }

  /// An interrupt closes the JDK's channel, and the file's name belongs to another file by then.
  @Test
  void afterAnInterruptionNoBytesOfAnotherFileAreRead() throws IOException {
    Path file = TestFiles.write(folder.resolve("file"), 1, 10);
    int descriptor = calls.open(file, FileCalls.O_RDONLY, 0);
    FileCalls.StatResult before = calls.stat(descriptor);
    Path other = TestFiles.write(folder.resolve("other"), 2, 20);
    Path _ = Files.move(other, file, StandardCopyOption.REPLACE_EXISTING);
    assertThat(calls.stat(descriptor)).as("of the open file").isEqualTo(before);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(10);
      assertThat(calls.pread(descriptor, target, 10, 0)).isEqualTo(10);
      Thread.currentThread().interrupt();
      assertThat(calls.pread(descriptor, target, 10, 0)).isEqualTo(code(Errno.ESTALE));
      assertThat(Thread.interrupted()).isTrue();
      assertThat(calls.pread(descriptor, target, 10, 0)).isEqualTo(code(Errno.ESTALE));
      assertThat(target.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(TestFiles.bytes(1, 10));
    }
    assertThat(calls.close(descriptor)).isZero();
  }

  /// The state that one implementation reads of a file must equal the state that the other reads.
  @Test
  void theStateOfAFileIsWhatTheKernelSays() {
    Path file = TestFiles.write(folder.resolve("file"), 1, 1234);
    int descriptor = Libc.INSTANCE.open(file, FileCalls.O_RDONLY, 0);
    FileCalls.StatResult expected = Libc.INSTANCE.stat(descriptor);
    assertThat(Libc.INSTANCE.close(descriptor)).isZero();
    FileCalls.StatResult found = JdkFiles.stat(file);
    assertThat(found)
        .usingRecursiveComparison()
        .ignoringFields("directMemoryAlignment", "directOffsetAlignment")
        .isEqualTo(expected);
  }
}
