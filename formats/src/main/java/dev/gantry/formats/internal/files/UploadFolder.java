// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/// A temporary folder of files that are to be uploaded. It goes with all that is in it.
public record UploadFolder(Path path) implements AutoCloseable {
  /// @throws dev.gantry.core.TransferException if it cannot be made
  public static UploadFolder make() {
    try {
      return new UploadFolder(Files.createTempDirectory("gantry-upload-"));
    } catch (IOException e) {
      throw FileErrors.of("create", System.getProperty("java.io.tmpdir", ""), e);
    }
  }

  /// A file in this folder.
  public Path file(String name) {
    return path.resolve(name);
  }

  @Override
  public void close() {
    try (Stream<Path> files = Files.list(path)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
      Files.delete(path);
    } catch (IOException e) {
      throw FileErrors.of("delete", path.toString(), e);
    }
  }
}
