// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Whether a file is still the one that was opened.
class FileIdentityTest extends SourceFileFixture {
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

  /// Two writes within a tick of the clock may have one time.
  @Test
  void aFileThatGrewWithinATickOfTheClockIsNotWhatItWas() throws IOException {
    SourceFile.Identity before = identity();
    Files.write(path, new byte[1], StandardOpenOption.APPEND);
    Files.setLastModifiedTime(path, FileTime.from(before.modifiedNanos(), NANOSECONDS));
    assertThat(identity()).isNotEqualTo(before);
  }
}
