// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AnnotatedElementContext;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.io.TempDirFactory;

/// Makes folders in memory, if the machine has `/dev/shm`, for tests that save some hundred times:
/// there `fsync` costs nothing.
public final class MemoryFolder implements TempDirFactory {
  private static final Path MEMORY = Path.of("/dev/shm");

  @Override
  public Path createTempDirectory(
      AnnotatedElementContext elementContext, ExtensionContext extensionContext) {
    return create();
  }

  /// Makes a folder for tests without JUnit's extensions, such as property tests, which must also
  /// call [#delete].
  public static Path create() {
    try {
      return Files.isWritable(MEMORY)
          ? Files.createTempDirectory(MEMORY, "gantry-")
          : Files.createTempDirectory("gantry-");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Deletes a folder with its contents, if it exists.
  public static void delete(Path folder) {
    if (!Files.exists(folder)) {
      return;
    }
    try (Stream<Path> paths = Files.walk(folder)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
