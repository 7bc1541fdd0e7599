// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;

/// On the libcufile at hand: NVIDIA's on a GPU host, in compatibility mode. Aligned requests only, and by
/// one thread: others fail there, or end the process; so this has a process of its own.
@Tag("gpu-alone")
@ExtendWith(StreamTransfersGpuTest.SkipsRefusals.class)
class StreamTransfersGpuTest extends StreamTransfersContract {
  @Override
  boolean registers() {
    return false;
  }

  /// libcufile 1.15.1 fails most requests by EIO in this mode, and without a rule that can be told.
  static final class SkipsRefusals implements TestExecutionExceptionHandler {
    @Override
    public void handleTestExecutionException(ExtensionContext context, Throwable failure)
        throws Throwable {
      boolean refused =
          failure instanceof TransferException e
              && e.failure() instanceof Failure.Errno errno
              && errno.name().equals("EIO");
      if (refused) {
        abort("libcufile fails requests on streams in compatibility mode: " + failure.getMessage());
      }
      throw failure;
    }
  }

  @Override
  int alignment() {
    return 4096;
  }
}
