// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
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

  @Test
  void aSmallFileThatDoesNotGetItsNameIsRemoved() {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).from(Function.RENAME, 1, new Fails(Errno.EIO));
    HubDisk disk = new HubDisk(calls, true);
    assertThatThrownBy(() -> disk.install(folder.resolve("blob"), new byte[] {1, 2}))
        .isInstanceOf(TransferException.class);
    disk.note(folder.resolve("main"), "text");
    assertThat(calls.count(Function.RENAME)).isEqualTo(2);
    assertThat(folder).isEmptyDirectory();
  }
}
