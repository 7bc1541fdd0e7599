// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/// Makes files hot or cold before they are measured.
public final class PageCache {
  private static final Path DROP_CACHES = Path.of("/proc/sys/vm/drop_caches");
  private static final int CHUNK_BYTES = 16 << 20;

  private PageCache() {}

  /// Reads all of the file.
  public static void warm(Path file) {
    try (FileChannel channel = FileChannel.open(file)) {
      ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK_BYTES);
      while (channel.read(chunk) >= 0) {
        chunk.clear();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Only root may; without it there are no cold runs.
  ///
  /// @return whether the cache is empty now
  public static boolean drop() {
    if (!Files.isWritable(DROP_CACHES)) {
      return false;
    }
    try {
      new ProcessBuilder("sync").start().waitFor();
      Files.writeString(DROP_CACHES, "3");
      return true;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }
}
