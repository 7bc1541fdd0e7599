// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.natives.CudaDriver;
import java.util.ArrayDeque;
import java.util.Queue;

/// Runs the gathering kernels of a ring one after another, or two at a time if the ring has three
/// slots or more. If the kernels of all slots ran at once, they would share the link to the host
/// and end together, and the link would be idle while the next batches are planned (H200, batches
/// of 38 MB, three slots: 43 GB/s instead of 55). The first kernel runs alone, since the consumer
/// waits for its batch. Thread-safe.
final class KernelPacer {
  private final int atOnce;

  /// The events recorded after the kernels that were queued last, oldest first.
  private final Queue<CudaDriver.Event> running = new ArrayDeque<>();

  /// @param slots the number of the ring's slots
  KernelPacer(int slots) {
    this.atOnce = Math.clamp(slots - 1L, 1, 2);
  }

  /// @param launch queues the kernel on `stream`
  /// @param done the event to record after the kernel
  synchronized void run(
      CudaDriver driver, CudaDriver.Stream stream, CudaDriver.Event done, Runnable launch) {
    CudaDriver.Event before = running.size() == atOnce ? running.remove() : running.peek();
    if (before != null) {
      driver.await(stream, before);
    }
    launch.run();
    driver.record(done, stream);
    running.add(done);
  }
}
