// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// A file in the folder of temporary files, which goes when it is closed, or when the process ends in order.
record TemporaryFile(Path path) implements AutoCloseable {
  /// @throws dev.gantry.core.TransferException if the file cannot be made
  static TemporaryFile create() {
    try {
      Path path = Files.createTempFile("gantry-", ".tar");
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
