// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;
import java.util.Set;

/// A small file for a C library, which no other user can read. It lies in a temporary folder of its own, and both are
/// removed when it is closed, or at the latest when the JVM ends.
public final class PrivateFile implements AutoCloseable {
  private static final FileAttribute<?> ONLY_OWNER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  private final Path path;

  private PrivateFile(Path path) {
    this.path = path;
  }

  /// @throws UncheckedIOException if the temporary folder cannot be written to
  public static PrivateFile write(String name, String text) {
    try {
      Path folder = Files.createTempDirectory("gantry-");
      Path path = folder.resolve(name);
      // Deleted in reverse order when the JVM ends: the file first, then its folder.
      folder.toFile().deleteOnExit();
      path.toFile().deleteOnExit();
      try (FileChannel channel =
          FileChannel.open(
              path, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), ONLY_OWNER)) {
        ByteBuffer bytes = StandardCharsets.UTF_8.encode(text);
        while (bytes.hasRemaining()) {
          channel.write(bytes);
        }
      }
      return new PrivateFile(path);
    } catch (IOException e) {
      throw new UncheckedIOException("a private file cannot be written: " + name, e);
    }
  }

  public Path path() {
    return path;
  }

  @Override
  public void close() {
    try {
      Files.deleteIfExists(path);
      Files.deleteIfExists(Objects.requireNonNull(path.getParent()));
    } catch (IOException e) {
      throw new UncheckedIOException("a private file cannot be deleted: " + path, e);
    }
  }
}
