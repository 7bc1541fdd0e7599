// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class HubLockTest {
  /// Another user who may write to the hub's folder must not be able to create files elsewhere
  /// through a link.
  @Test
  void aLinkInTheLocksPlaceIsNotFollowed(@TempDir Path folder) throws IOException {
    Path elsewhere = folder.resolve("elsewhere");
    Path link = Files.createSymbolicLink(folder.resolve("a.lock"), elsewhere);
    HubLock.take(Libc.INSTANCE, link, FileCalls.LOCK_EX, () -> "", () -> true).close();
    assertThat(elsewhere).doesNotExist();
    assertThat(link).isSymbolicLink();
  }

  /// Another thread's file may have got the descriptor's number before the second call.
  @Test
  void aLockThatIsClosedTwiceClosesItsDescriptorOnce(@TempDir Path folder) {
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    Path file = folder.resolve("a.lock");
    HubLock lock = HubLock.take(calls, file, FileCalls.LOCK_EX, () -> "", () -> true);
    lock.close();
    lock.close();
    assertThat(calls.count(Function.CLOSE)).isEqualTo(1);
  }
}
