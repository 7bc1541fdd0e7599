// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.testing.ForwardingFileCalls;
import java.nio.file.Path;
import java.util.concurrent.Semaphore;

/// Holds savers where they make a checkpoint's folder, until the test lets them pass. Thread-safe.
final class Gate extends ForwardingFileCalls {
  private final Semaphore there = new Semaphore(0);
  private final Semaphore mayPass = new Semaphore(0);

  Gate(FileCalls real) {
    super(real);
  }

  @Override
  public int mkdir(Path folder, int mode) {
    if (folder.getFileName().toString().startsWith("gantry-step-")) {
      there.release();
      mayPass.acquireUninterruptibly();
    }
    return super.mkdir(folder, mode);
  }

  /// Waits until the next saver arrives at the gate; each call waits for another saver.
  void awaitSaver() {
    there.acquireUninterruptibly();
  }

  void letPass(int savers) {
    mayPass.release(savers);
  }
}
