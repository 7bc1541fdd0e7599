// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDList;
import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.Latches;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class PipelinedLoadTest {
  /// Otherwise a part that is still being read would be written to memory that no one closes.
  @Test
  void closingWaitsForPartsThatAreStillRead() throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    AtomicBoolean ended = new AtomicBoolean();
    PipelinedLoad load =
        new PipelinedLoad(
            TransferOptions.defaults(),
            new long[] {1, 1},
            0,
            (part, _) -> {
              if (part == 0) {
                throw new MisuseException("the first part fails");
              }
              begun.countDown();
              Cleanup.awaitUninterruptibly(() -> {
                mayEnd.await();
                return true;
              });
              ended.set(true);
              return new PipelinedLoad.Arrays(List.of());
            });
    assertThatThrownBy(load::next).hasMessage("the first part fails");
    begun.await();
    Thread closing = Thread.ofPlatform().start(load::close);
    try {
      Latches.awaitThat(() -> closing.getState() != Thread.State.RUNNABLE);
      assertThat(closing.isAlive()).isTrue();
    } finally {
      mayEnd.countDown();
    }
    closing.join();
    assertThat(ended).isTrue();
  }

  /// Their memory would stay until the garbage collector finds it.
  @Test
  void partsThatNobodyTookAreClosed() throws InterruptedException {
    CountDownLatch loaded = new CountDownLatch(1);
    AtomicBoolean closed = new AtomicBoolean();
    NDList second =
        new NDList() {
          @Override
          public void close() {
            closed.set(true);
          }
        };
    try (PipelinedLoad load =
        new PipelinedLoad(
            TransferOptions.defaults(),
            new long[] {1, 1},
            0,
            (part, _) -> {
              if (part == 1) {
                loaded.countDown();
              }
              return new PipelinedLoad.Arrays(part == 1 ? List.of(second) : List.of());
            })) {
      load.next().close();
      loaded.await();
      assertThat(closed).isFalse();
    }
    assertThat(closed).isTrue();
  }

  @Test
  void anInterruptionEndsTheWaitForAPartAndStaysNoted() {
    CountDownLatch mayEnd = new CountDownLatch(1);
    try (PipelinedLoad load =
        new PipelinedLoad(
            TransferOptions.defaults(),
            new long[] {1, 1},
            0,
            (_, _) -> {
              Cleanup.awaitUninterruptibly(() -> {
                mayEnd.await();
                return true;
              });
              return new PipelinedLoad.Arrays(List.of());
            })) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(load::next)
          .isInstanceOfSatisfying(
              TransferException.class,
              e -> assertThat(e.failure()).isEqualTo(new Failure.Cancelled()))
          .hasMessage("load failed: tensors, on an interrupted thread: cancelled");
      boolean noted = Thread.interrupted();
      mayEnd.countDown();
      assertThat(noted).isTrue();
    }
  }

  /// Reads of whole blocks of a file bring more bytes than the tensors have.
  @Test
  void progressEndsAtTheBytesOfAllParts() {
    List<Long> told = new ArrayList<>();
    TransferOptions options =
        TransferOptions.defaults()
            .withProgress((now, total) -> {
              assertThat(total).isEqualTo(9);
              told.add(now);
            });
    try (PipelinedLoad load =
        new PipelinedLoad(
            options,
            new long[] {4, 3},
            2,
            (_, part) -> {
              part.progress().onProgress(4096, 4096);
              return new PipelinedLoad.Arrays(List.of());
            })) {
      load.next().close();
      load.next().close();
    }
    assertThat(told).hasSize(2).last().isEqualTo(7L);
  }
}
