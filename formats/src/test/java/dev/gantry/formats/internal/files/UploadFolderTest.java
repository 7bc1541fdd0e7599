// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class UploadFolderTest {
  /// Begins an upload and does not end.
  static final class Uploading {
    public static void main(String[] arguments) throws IOException {
      try (UploadFolder folder = UploadFolder.make()) {
        Files.write(folder.file("weights"), new byte[1000]);
        System.out.println(folder.path());
        int _ = System.in.read();
      }
    }
  }

  /// The test has its own folder for temporary files, because any other upload would also remove
  /// the rest of a killed one.
  @TempDir Path temporary;

  private final String before = System.getProperty("java.io.tmpdir");

  @BeforeEach
  void useOurs() {
    System.setProperty("java.io.tmpdir", temporary.toString());
  }

  @AfterEach
  void useTheOthers() {
    System.setProperty("java.io.tmpdir", before);
  }

  private Process start() throws IOException {
    return ChildJvm.command(List.of("-Djava.io.tmpdir=" + temporary), Uploading.class)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  @Test
  void theNextUploadRemovesWhatAKilledOneLeftAndNothingElse() throws Exception {
    Process killed = start();
    Process alive = start();
    Path others = Files.createTempDirectory(temporary, "gantry-upload-");
    try (BufferedReader killedLines = killed.inputReader();
        BufferedReader aliveLines = alive.inputReader()) {
      Path left = Path.of(killedLines.readLine());
      Path used = Path.of(aliveLines.readLine());
      killed.toHandle().destroyForcibly();
      killed.onExit().join();
      assertThat(left.resolve("weights")).exists();

      UploadFolder next = UploadFolder.make();
      next.close();

      assertThat(left).doesNotExist();
      assertThat(used.resolve("weights")).exists();
      assertThat(others).exists();
      assertThat(next.path()).doesNotExist();
      alive.getOutputStream().close();
      assertThat(alive.waitFor()).isZero();
      assertThat(used).doesNotExist();
    } finally {
      killed.destroyForcibly();
      alive.destroyForcibly();
      Files.delete(others);
    }
  }
}
