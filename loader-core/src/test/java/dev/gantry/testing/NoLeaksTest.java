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

/// Files that other threads open and close during the check are no leaks.
class NoLeaksTest {
  private static final int LOOKS = 500;

  /// Threads read the registered bytes of all processes whenever they free memory.
  @Test
  void aLookAtWhatProcessesRegisteredLeavesNothingOpen(@TempDir Path folder) throws Exception {
    AtomicBoolean over = new AtomicBoolean();
    RegisteredPages pages = new RegisteredPages(Libc.INSTANCE, folder.resolve("registered"));
    try (ExecutorService executor = Executors.newSingleThreadExecutor()) {
      // The file exists from now on and is open once.
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
