// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class TemporaryFolderTest {
  private static final int FILES = 200;

  @RepeatedTest(10)
  @Timeout(60)
  void aFolderInWhichAWriterReplacesFilesIsDeleted(@TempDir Path in) throws Exception {
    TemporaryFolder folder = TemporaryFolder.create("written", in, false);
    for (int i = 0; i < FILES; i++) {
      Files.createFile(folder.path().resolve("new" + i));
    }
    Thread writer = Thread.ofPlatform().start(() -> rename(folder.path()));
    folder.close();
    writer.join();
    assertThat(in).isEmptyDirectory();
  }

  /// Renames files until one is gone.
  private static void rename(Path folder) {
    try {
      for (int i = 0; i < FILES; i++) {
        Files.move(folder.resolve("new" + i), folder.resolve("done" + i));
      }
    } catch (IOException _) {
      // The folder is being deleted.
    }
  }
}
