// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MalformedFileException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PlannedFileTest {
  @TempDir Path folder;

  private final List<String> closed = new ArrayList<>();

  private void requireRefused(PlannedFile planned, Runnable opening, String how) {
    assertThatThrownBy(() ->
            planned.open(
                _ -> {
                  opening.run();
                  return "opened";
                },
                closed::add))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll("changed-meanwhile", how);
  }

  private static void write(Path file, String text) {
    try {
      Files.writeString(file, text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void opensNothing() {
    throw new AssertionError("the file was opened");
  }

  @Test
  void aFileThatTakesTheNameWhileItIsOpenedIsRefusedAndClosed() {
    Path file = folder.resolve("a");
    write(file, "one");
    PlannedFile planned = PlannedFile.of(file);
    assertThat(planned.<String>open(_ -> "opened", closed::add)).isEqualTo("opened");
    assertThat(closed).isEmpty();
    requireRefused(planned, () -> write(file, "three"), "it was written anew");
    assertThat(closed).containsExactly("opened");
  }

  @Test
  void aFileThatHasChangedIsNotOpened() throws IOException {
    Path file = folder.resolve("a");
    write(file, "one");
    PlannedFile planned = PlannedFile.of(file);
    FileTime time = Files.getLastModifiedTime(file);
    write(file, "three");
    Files.setLastModifiedTime(file, time);
    requireRefused(planned, PlannedFileTest::opensNothing, "it was written anew");
    write(file, "two");
    Files.setLastModifiedTime(file, FileTime.fromMillis(time.toMillis() + 1000));
    requireRefused(planned, PlannedFileTest::opensNothing, "it was written anew");
    Files.delete(file);
    requireRefused(planned, PlannedFileTest::opensNothing, "it is gone");
  }
}
