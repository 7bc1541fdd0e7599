// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.IdleWatch;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Sixteen concurrent loads onto a GPU whose memory is too small for all of them.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CrowdedDeviceStubTest {
  private static final int LOADS = 16;

  /// The stub aligns slabs of this size as the driver does, so each slab is allocated at the first
  /// attempt.
  private static final int SLAB = 2 << 20;

  private static final int LENGTH = 4 * SLAB;
  private static final Device.Cuda GPU = new Device.Cuda(0);

  @TempDir Path folder;
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final StubControls cuda = StubControls.cuda();
  private final GantrySession gantry = GantrySession.open(calls);
  private final CudaContext context = CudaContext.of(GPU);
  private final ExecutorService executor = Executors.newCachedThreadPool();
  private Path file;
  private DeviceSlab filler;

  /// Marks the thread of a load, whose readers inherit the class loader.
  private static final class Load extends ClassLoader {
    private final Cancellation cancellation = new Cancellation();
  }

  @BeforeEach
  void writeFile() {
    file = TestFiles.write(folder.resolve("file"), 1, LENGTH);
    gantry.freeIdle();
    cuda.clear();
  }

  @AfterEach
  void close() {
    executor.close();
    if (filler != null) {
      filler.release();
    }
    gantry.close();
    assertThat(cuda.count("device bytes")).isZero();
  }

  /// Allocates all of the GPU's memory but `bytes`.
  private void leave(long bytes) {
    long free;
    try (var _ = context.enter()) {
      free = context.driver().memoryInfo().freeBytes();
    }
    filler = DeviceSlab.allocate(context, free - bytes);
  }

  private Loaded load(Load load) {
    Thread.currentThread().setContextClassLoader(load);
    return gantry.load(
        List.of(0, 1, 2, 3).stream()
            .map(i -> new ExtentRequest(new Extent(file, (long) i * SLAB, SLAB), 1))
            .toList(),
        GPU,
        TransferOptions.defaults()
            .withLimits(new PlanLimits(PlanLimits.BLOCK_BYTES, 0, SLAB))
            .withTransport(Transport.STAGED)
            .withCachePolicy(CachePolicy.BUFFERED)
            .withThreads(2)
            .withCancellation(load.cancellation));
  }

  private static Failure failureOf(Future<Loaded> load) throws InterruptedException {
    try {
      load.get().close();
    } catch (ExecutionException e) {
      return ((TransferException) e.getCause()).failure();
    }
    throw new AssertionError("no failure");
  }

  /// Allocates the memory of a load of 64 slabs.
  ///
  /// @return the slabs; none if the memory is too small for all of them
  private static List<Slab> take() {
    List<List<Slab>> taken = new ArrayList<>();
    try {
      Admission.Slabs wanted = new Admission.Slabs(GPU, Collections.nCopies(64, (long) SLAB), 0);
      Admission.allocate(List.of(wanted), taken, "", new Cancellation());
      return taken.getFirst();
    } catch (TransferException e) {
      taken.forEach(Slab::releaseAll);
      assertThat(taken).as("what it took of memory that another one could have").isEmpty();
      assertThat(e).hasMessageContaining("bytes are free");
      return List.of();
    }
  }

  @Test
  void aCancelledLoadTakesNoMemory() {
    Cancellation cancelled = new Cancellation();
    cancelled.cancel();
    List<List<Slab>> taken = new ArrayList<>();
    Admission.Slabs wanted = new Admission.Slabs(GPU, Collections.nCopies(4, (long) SLAB), 0);
    assertThatThrownBy(() -> Admission.allocate(List.of(wanted), taken, "", cancelled))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cancelled");
    assertThat(taken).allSatisfy(each -> assertThat(each).isEmpty());
  }

  @Test
  void asManyLoadsGetMemoryAsTheDeviceHasRoomFor() throws Exception {
    int room = 3;
    leave(room * 64L * SLAB + SLAB);
    for (int round = 0; round < 20; round++) {
      CountDownLatch all = new CountDownLatch(LOADS);
      List<Future<List<Slab>>> loads = new ArrayList<>();
      for (int i = 0; i < LOADS; i++) {
        loads.add(
            executor.submit(() -> {
              all.countDown();
              await(all);
              return take();
            }));
      }
      int got = 0;
      for (Future<List<Slab>> load : loads) {
        got += load.get().size();
      }
      for (Future<List<Slab>> load : loads) {
        Slab.releaseAll(load.get());
      }
      assertThat(got).isEqualTo(room * 64);
    }
  }

  /// The device has memory for one more load beside the load that continues. Freeing device memory
  /// waits for all work of the device, so loads that end early leave the freeing to another
  /// thread, even if the session may keep no memory.
  @Test
  void cancelledLoadsReturnWhileAnotherOneGoesOn() throws Exception {
    leave(2 * LENGTH + SLAB);
    Load other = new Load();
    CountDownLatch otherReads = new CountDownLatch(2);
    CountDownLatch othersAreDone = new CountDownLatch(1);
    calls.from(
        Function.PREAD,
        1,
        new After(() -> {
          Load load = (Load) Thread.currentThread().getContextClassLoader();
          if (load == other) {
            otherReads.countDown();
            await(othersAreDone);
          } else {
            load.cancellation.cancel();
          }
        }));
    FutureTask<Loaded> goesOn = new FutureTask<>(() -> load(other));
    executor.execute(goesOn);
    await(otherReads);
    // The thread that frees idle memory waits, so any call of cuMemFree now comes from the loads.
    CountDownLatch watchWaits = new CountDownLatch(1);
    IdleWatch.watch(() -> {
      watchWaits.countDown();
      await(othersAreDone);
      return false;
    });
    await(watchWaits);
    try {
      long freed = cuda.calls("cuMemFree");
      long slabs = LiveResources.snapshot().slabs();
      List<Future<Loaded>> loads = new ArrayList<>();
      for (int i = 0; i < LOADS; i++) {
        loads.add(executor.submit(() -> load(new Load())));
      }
      for (Future<Loaded> load : loads) {
        assertThat(failureOf(load)).isInstanceOfAny(Failure.Cancelled.class, Failure.Cuda.class);
      }
      assertThat(cuda.calls("cuMemFree")).isEqualTo(freed);
      assertThat(LiveResources.snapshot().slabs()).as("no slab of theirs").isEqualTo(slabs);
    } finally {
      othersAreDone.countDown();
    }
    goesOn.get().close();
  }
}
