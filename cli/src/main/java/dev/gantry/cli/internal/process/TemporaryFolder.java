// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.process;

import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Makes a temporary folder, and deletes the folder with all its files on [#close], or when the
/// JVM ends before that.
public final class TemporaryFolder implements AutoCloseable {
  private static final int MAX_ATTEMPTS = 100;

  private final Path path;
  private final boolean keep;
  private final Thread hook;

  private TemporaryFolder(Path path, boolean keep) {
    this.path = path;
    this.keep = keep;
    this.hook = new Thread(this::deleteAtExit, "gantry-clean-up");
  }

  /// @param prefix the prefix of the folder's name
  /// @param parent the folder in which it is made; null for the system's temporary folder
  /// @param keep whether the folder is kept instead of deleted
  /// @throws dev.gantry.core.TransferException if the folder cannot be made
  public static TemporaryFolder create(String prefix, @Nullable Path parent, boolean keep) {
    Path in = parent == null ? Path.of(System.getProperty("java.io.tmpdir")) : parent;
    TemporaryFolder folder = new TemporaryFolder(made(in, prefix), keep);
    Runtime.getRuntime().addShutdownHook(folder.hook);
    return folder;
  }

  private static Path made(Path parent, String prefix) {
    try {
      return Files.createTempDirectory(parent, prefix);
    } catch (IOException e) {
      throw FileErrors.of("mkdir", "in " + parent, e);
    }
  }

  public Path path() {
    return path;
  }

  @Override
  public void close() throws IOException {
    // If the JVM is ending, the hook deletes the folder.
    if (Termination.removeHook(hook)) {
      delete();
    }
  }

  private void deleteAtExit() {
    try {
      delete();
    } catch (IOException e) {
      System.err.println("gantry: " + path + " cannot be deleted: " + e);
    }
  }

  private void delete() throws IOException {
    if (!keep) {
      delete(path);
    }
  }

  /// Deletes a folder with all that is in it.
  ///
  /// The deletion is repeated if a file appears in the folder or leaves it meanwhile, because a
  /// writer may still be running after its interrupt. The writer cannot add files once the folder
  /// is gone.
  public static void delete(Path folder) throws IOException {
    for (int attempt = 1; ; attempt++) {
      try (Stream<Path> files = Files.walk(folder)) {
        for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
          Files.deleteIfExists(file);
        }
        return;
      } catch (DirectoryNotEmptyException e) {
        if (attempt == MAX_ATTEMPTS) {
          throw e;
        }
      } catch (UncheckedIOException e) {
        // The listing met a file that is gone.
        if (attempt == MAX_ATTEMPTS) {
          throw e.getCause();
        }
      }
    }
  }
}
