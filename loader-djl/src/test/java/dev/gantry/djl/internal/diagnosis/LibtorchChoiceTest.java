// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.diagnosis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibtorchChoiceTest {
  @TempDir private Path folder;

  private static LibtorchChoice find(String libraryPath) {
    return LibtorchChoice.find(Optional.of(libraryPath), "");
  }

  @Test
  void aNamedFolderComesFirst() throws IOException {
    Path library = Files.createFile(folder.resolve("libtorch.so"));
    LibtorchChoice cpu = find(folder.resolve("absent") + File.pathSeparator + folder);
    assertThat(cpu.describe()).startsWith("cpu in " + folder).contains("PYTORCH_LIBRARY_PATH");
    assertThat(cpu.isForCuda()).isFalse();
    Files.createFile(folder.resolve("libtorch_cuda.so"));
    assertThat(find(folder.toString()).isForCuda()).isTrue();
    assertThat(find(library.toString())).isEqualTo(find(folder.toString()));
  }

  @Test
  void elseTheClassPathsIsTaken() {
    assumeThat(System.getenv("PYTORCH_VERSION")).as("DJL believes it").isNull();
    // On GPU hosts the tests use the host's own libtorch, and the class path has none.
    assumeThat(
            LibtorchChoiceTest.class.getClassLoader().getResource("native/lib/pytorch.properties"))
        .isNotNull();
    assertThat(find(folder.toString()).describe()).matches("cpu 2\\.7\\.1.*, from the class path");
    assertThat(LibtorchChoice.find(Optional.empty(), "").isForCuda()).isFalse();
  }
}
