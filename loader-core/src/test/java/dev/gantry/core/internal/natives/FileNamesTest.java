// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The kernel's file names are bytes. A JVM converts them to text in the encoding of its locale,
/// which may lack some of them. Other names only a shell or a store
/// understands.
class FileNamesTest {
  @TempDir Path folder;

  private Path file(String encoded) {
    return Path.of(URI.create(folder.toUri() + encoded));
  }

  @ParameterizedTest
  @CsvSource({"C, set LC_ALL=C.UTF-8", "C.UTF-8, No such file or directory"})
  void filesOfAnyNameAreReadAndWrittenUnderEveryLocale(String locale, String missing)
      throws IOException, InterruptedException {
    List<String> names = List.of("plain", "with%20space%3F%25", "w%C3%A4", "w%FF%E4");
    for (String name : names) {
      Path _ = TestFiles.write(file(name), FileNamesProgram.SEED, FileNamesProgram.LENGTH);
    }
    ProcessBuilder program =
        ChildJvm.command(List.of(), FileNamesProgram.class, folder).redirectErrorStream(true);
    program.environment().put("LC_ALL", locale);
    Process process = program.start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    assertThat(output).contains("open failed: " + folder + "/w?: errno 2 ENOENT").contains(missing);
    for (String name : names) {
      assertThat(Files.mismatch(file(name), file(name + ".new"))).as(name).isEqualTo(-1);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"~", "~/run", "a/~/b"})
  void aPartOfAPathThatIsATildeIsTheHomeFolderOfAShell(String name) {
    assertThat(FileNames.whyMissing(name)).contains("only shells take ~");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"s3a:/b/k", "s3n:/b/k", "gs:/b", "az:/b", "abfss:/b", "wasb:/b", "http:/h"})
  void whatIsLeftOfAUrlIsNoPath(String name) {
    assertThat(FileNames.whyMissing(name)).contains("a Path holds no URL");
  }

  @ParameterizedTest
  @ValueSource(strings = {"backup~", "a~b/c", "~me/run", "step:/x", "s3", "./s3:/b/k", "a/s3:/b/k"})
  void otherNamesLookRight(String name) {
    assertThat(FileNames.whyMissing(name)).isEmpty();
  }
}
