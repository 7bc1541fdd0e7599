// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A named pipe in place of one of Gantry's files, in a folder that others can write to, is
/// refused at once.
@ExtendWith(NoLeaks.class)
@Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NamedPipesTest {
  @TempDir private Path folder;

  private Path pipe(String name) throws Exception {
    Path pipe = folder.resolve(name);
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    return pipe;
  }

  private static void assertRefused(Path pipe, ThrowingCallable work) {
    assertThatThrownBy(work)
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(pipe.toString(), "not-a-regular-file")
        .hasMessageNotContaining("\n");
    assertThat(pipe).exists();
  }

  @Test
  void asTheLockOfAFolder() throws Exception {
    Path pipe = pipe(FolderLock.FILE_NAME);
    for (int i = 0; i < 2; i++) {
      assertRefused(pipe, () -> FolderLock.take(folder, "writer").close());
    }
    assertThat(pipe.toFile().delete()).isTrue();
    FolderLock.take(folder, "writer").remove();
  }

  @Test
  void asTheListOfASet() throws Exception {
    Path pipe = pipe(JointFiles.LIST);
    Path part = folder.resolve("part-00000-of-00001-abcd1234.tfrecord");
    assertThat(part.toFile().createNewFile()).isTrue();
    assertThatThrownBy(() ->
            FileList.files(Folder.at(GantrySession.shared(), Location.of(folder)).orElseThrow()))
        .as("a reader finds no list")
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("no-list");
    try (GantrySession session = GantrySession.open()) {
      assertRefused(pipe, () -> JointFiles.begin(session, folder, true).close());
    }
  }

  @Test
  void asTheListOfAnUnfinishedSet() throws Exception {
    assertThat(JointFiles.unfinished(folder).toFile().mkdir()).isTrue();
    Path pipe = pipe(JointFiles.unfinished(folder).getFileName() + "/" + JointFiles.LIST);
    try (GantrySession session = GantrySession.open()) {
      assertRefused(pipe, () -> JointFiles.begin(session, folder, true).close());
    }
  }
}
