// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.RecordingFileCalls;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HubDiskTest {
  @TempDir Path folder;

  /// A power cut must not leave a name in the cache without its bytes, because the cache never
  /// fetches them again.
  @Test
  void aSmallFileIsOnTheDiskBeforeItGetsItsName() {
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, folder);
    Path file = folder.resolve("blob");
    new HubDisk(calls, true).install(file, new byte[] {1, 2});
    assertThat(file).hasBinaryContent(new byte[] {1, 2});
    assertThat(calls.steps().stream().<Class<?>>map(Step::getClass))
        .containsSubsequence(Step.Write.class, Step.SyncFile.class, Step.Rename.class);
  }
}
