// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The kernel's counts of pages, for any page size.
class LibcTest {
  private static final Libc LIBC = Libc.INSTANCE;

  @Test
  void aPageIsAsLargeAsTheSystemSays() throws IOException {
    Process getconf = new ProcessBuilder("getconf", "PAGESIZE").start();
    String said = new String(getconf.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(LIBC.pageBytes()).isEqualTo(Long.parseLong(said.strip()));
  }

  @Test
  void whatLiesInTheCacheIsCountedInWholePages(@TempDir Path folder) throws IOException {
    Path file =
        Files.write(folder.resolve("file"), new byte[Math.toIntExact(LIBC.pageBytes() + 1)]);
    int descriptor = LIBC.open(file, FileCalls.O_RDONLY, 0);
    try {
      long cached = LIBC.cachedBytes(descriptor, 0, 2 * LIBC.pageBytes());
      assumeTrue(cached >= 0, "this kernel does not say");
      assertThat(cached).isEqualTo(2 * LIBC.pageBytes());
    } finally {
      LIBC.close(descriptor);
    }
  }
}
