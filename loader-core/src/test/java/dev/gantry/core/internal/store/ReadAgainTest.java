// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.spi.Residency;
import dev.gantry.testing.OwnProcess;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadAgainTest {
  private static final int BYTES = 1 << 20;

  @TempDir Path folder;
  private long availableBytes = 4 * BYTES;

  private final ReadAgain readAgain = new ReadAgain(() -> availableBytes, 3);

  private static SourceFile.Identity identity(long inode) {
    return new SourceFile.Identity(1, inode, BYTES, 1);
  }

  private boolean again(long inode) {
    return readAgain.opened(identity(inode)).isReadAgain();
  }

  private void read(long inode) {
    readAgain.opened(identity(inode)).readDirectly(BYTES);
  }

  @Test
  void aFileGoesThroughTheCacheOnceMostOfItsBytesWereReadPastIt() {
    assertThat(again(1)).isFalse();
    readAgain.opened(identity(1)).readDirectly(BYTES / 8 * 7 - 1);
    assertThat(again(1)).isFalse();
    readAgain.opened(identity(1)).readDirectly(1);
    assertThat(again(1)).isTrue();
    assertThat(again(2)).as("another file").isFalse();
  }

  @Test
  void theFilesTakeAtMostHalfOfTheAvailableMemory() {
    read(1);
    read(2);
    read(3);
    assertThat(again(1)).isTrue();
    assertThat(again(2)).isTrue();
    assertThat(again(3)).as("the third of two that fit").isFalse();
    availableBytes = 2 * BYTES;
    assertThat(again(1)).as("when there is less memory").isFalse();
    availableBytes = 6 * BYTES;
    assertThat(again(3)).as("when there is more memory").isTrue();
  }

  @Test
  void aForgottenFileLeavesItsMemoryToOthers() {
    availableBytes = 2 * BYTES;
    read(1);
    assertThat(again(1)).isTrue();
    read(2);
    assertThat(again(2)).isFalse();
    read(3);
    read(4);
    assertThat(again(2)).isTrue();
    assertThat(again(1)).as("forgotten").isFalse();
  }

  /// Opens a file and reads it whole, as it should be read.
  private boolean load(long inode) {
    ReadAgain.File file = readAgain.opened(identity(inode));
    if (!file.isReadAgain()) {
      file.readDirectly(BYTES);
    }
    return file.isReadAgain();
  }

  @Test
  void aFileThatIsNoLongerOpenedLeavesItsMemoryToOthers() {
    availableBytes = 2 * BYTES;
    assertThat(List.of(load(1), load(1), load(1))).containsExactly(false, true, true);
    assertThat(List.of(load(2), load(2), load(2))).containsExactly(false, false, true);
    assertThat(load(1)).isFalse();
  }

  @Test
  void aFileThatIsOpenKeepsItsMemory() {
    availableBytes = 2 * BYTES;
    assertThat(List.of(load(1), load(1))).containsExactly(false, true);
    ReadAgain.File open = readAgain.opened(identity(1));
    open.staysOpen();
    assertThat(List.of(load(2), load(2), load(2), load(2))).containsOnly(false);
    open.closed();
    assertThat(load(2)).isTrue();
  }

  @Test
  void filesThatAreReadInTurnDoNotTakeEachOthersMemory() {
    availableBytes = 2 * BYTES;
    for (int epoch = 0; epoch < 5; epoch++) {
      assertThat(load(1)).as("the first file in epoch " + epoch).isEqualTo(epoch > 0);
      assertThat(load(2)).as("the second file").isFalse();
    }
  }

  @Test
  void aFileWhoseMemoryCannotBeAskedForStaysClosed() throws IOException {
    Path file = Files.write(folder.resolve("file"), new byte[0]);
    ReadAgain failing =
        new ReadAgain(
            () -> {
              throw new OutOfMemoryError("of the test");
            },
            3);
    long before = descriptors(file);
    assertThatThrownBy(
            () -> new PosixFile(Libc.INSTANCE, file, CachePolicy.BY_RESIDENCY, failing).close())
        .isInstanceOf(OutOfMemoryError.class);
    assertThat(descriptors(file)).isEqualTo(before);
  }

  private static long descriptors(Path file) throws IOException {
    return OwnProcess.descriptors().stream().filter(file.toString()::equals).count();
  }

  @Test
  void aColdFileIsHotAfterItWasReadTwice() throws IOException {
    Path file = Files.write(folder.resolve("file"), new byte[BYTES]);
    for (boolean expected : new boolean[] {true, false}) {
      assumeThat(PageCache.drop(file)).isZero();
      try (PosixFile opened =
              new PosixFile(Libc.INSTANCE, file, CachePolicy.BY_RESIDENCY, readAgain);
          Arena arena = Arena.ofConfined()) {
        assumeThat(opened.descriptors().directAbsence()).as("no O_DIRECT").isEmpty();
        boolean direct = opened.residency(0, BYTES) != Residency.HOT;
        assertThat(direct).isEqualTo(expected);
        assertThat(opened.read(arena.allocate(BYTES, 4096), 0, BYTES, direct)).isEqualTo(expected);
        assertThat(opened.residentBytes() == BYTES).isEqualTo(!expected);
      }
    }
  }
}
