// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// A file in the system's folder for temporary files. It is removed when it is closed, or when the
/// process exits normally.
public record TemporaryFile(Path path) implements AutoCloseable {
  /// @param suffix the end of the file's name
  /// @throws dev.gantry.core.TransferException if the file cannot be made
  public static TemporaryFile create(String suffix) {
    try {
      Path path = Files.createTempFile("gantry-", suffix);
      path.toFile().deleteOnExit();
      return new TemporaryFile(path);
    } catch (IOException e) {
      throw FileErrors.of("create", System.getProperty("java.io.tmpdir"), e);
    }
  }

  @Override
  public void close() {
    try {
      boolean _ = Files.deleteIfExists(path);
    } catch (IOException e) {
      throw FileErrors.of("delete", path.toString(), e);
    }
  }
}
