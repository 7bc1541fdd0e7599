// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.process;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The end of a command's JVM.
class TerminationTest {
  @TempDir private Path parent;

  /// A command that leaves a temporary folder at once, and waits in another until it is told to
  /// end.
  static final class Waiting {
    public static void main(String[] arguments) throws IOException {
      Path in = Path.of(arguments[0]);
      TemporaryFolder.create("left", in, false).close();
      TemporaryFolder open = TemporaryFolder.create("open", in, false);
      int _ =
          Termination.guard(() -> {
            System.out.println("waits in " + open.path());
            try {
              new CountDownLatch(1).await();
            } catch (InterruptedException _) {
              System.out.println("was interrupted");
            }
            return 0;
          });
    }
  }

  /// The JVM waits for the command no longer than it takes.
  @Test
  void aCommandThatIsToldToEndEndsAtOnceAndLeavesNoFolder() throws Exception {
    Path out = parent.resolve("out");
    Path err = parent.resolve("err");
    Process command =
        ChildJvm.command(List.of(), Waiting.class, parent)
            .redirectOutput(out.toFile())
            .redirectError(err.toFile())
            .start();
    while (command.isAlive() && !read(out).contains("waits in ")) {
      Thread.onSpinWait();
    }
    command.destroy();
    assertThat(command.waitFor(15, TimeUnit.SECONDS)).isTrue();
    assertThat(read(out)).contains("was interrupted");
    assertThat(read(err)).doesNotContain("left behind");
    try (var files = Files.list(parent)) {
      assertThat(files).containsExactlyInAnyOrder(out, err);
    }
  }

  private static String read(Path file) throws IOException {
    return Files.readString(file, StandardCharsets.UTF_8);
  }
}
