// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.natives.Libc;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Files that other threads open and close meanwhile are no leaks.
class NoLeaksTest {
  private static final int LOOKS = 500;

  /// Threads look at what is available whenever they give memory back.
  @Test
  void aLookAtWhatProcessesRegisteredLeavesNothingOpen(@TempDir Path folder) throws Exception {
    AtomicBoolean over = new AtomicBoolean();
    RegisteredPages pages = new RegisteredPages(Libc.INSTANCE, folder.resolve("registered"));
    try (ExecutorService executor = Executors.newSingleThreadExecutor()) {
      // So that the file is there, and is open once.
      pages.add(1);
      List<String> before = NoLeaks.openFiles();
      Future<?> other =
          executor.submit(() -> {
            while (!over.get()) {
              long _ = pages.bytes();
            }
          });
      try {
        for (int i = 0; i < LOOKS; i++) {
          assertThat(NoLeaks.openFiles()).isEqualTo(before);
        }
      } finally {
        over.set(true);
        pages.add(-1);
      }
      other.get();
    }
  }
}
