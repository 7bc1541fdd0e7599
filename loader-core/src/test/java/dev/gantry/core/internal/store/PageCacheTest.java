// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Dropped pages are cold, and pages become hot when they are read.
class PageCacheTest {
  private static final int BYTES = 3 << 20;

  private static final int LOOKS = 100;

  @TempDir private Path folder;

  @Test
  void droppedPagesAreGoneUntilTheFileIsRead() throws IOException {
    Path file = Files.write(folder.resolve("file"), new byte[BYTES]);
    long before = PageCache.residentBytes(file);
    assumeTrue(before == BYTES, "this file system or kernel does not say");
    long left = PageCache.drop(file);
    // A file system that keeps its files in memory drops no page.
    assumeTrue(left < BYTES, "this file system keeps its pages");

    assertThat(left).isZero();
    assertThat(PageCache.residentBytes(file)).isZero();
    // The kernel may have evicted the pages again before the check, so the test tries several
    // times.
    assertThat(LongStream.generate(() -> residentBytesOnceWarm(file)).limit(LOOKS))
        .anyMatch(resident -> resident > 0);
  }

  private static long residentBytesOnceWarm(Path file) {
    PageCache.warm(file);
    return PageCache.residentBytes(file);
  }

  @Test
  void aMissingFileIsAFailure() {
    assertThatThrownBy(() -> PageCache.drop(folder.resolve("none")))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOENT");
    assertThatThrownBy(() -> PageCache.warm(folder.resolve("none")))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOENT");
  }
}
