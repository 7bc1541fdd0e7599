// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Idle threads between jobs, and libcufile's driver: the C library has aborted a process in which
/// a thread that had called libcufile ended after the driver was closed.
@Tag("gpu")
class KeptThreadsGpuTest {
  private static final int BATCHES = 64;
  private static final Device GPU = new Device.Cuda(0);
  private static final String NO_COMPAT = "no compat: ";
  private static final String DONE = "done";

  @TempDir Path folder;

  /// One session reads by libcufile and is closed while another session's ring continues. The idle
  /// threads end ten seconds later, and then the driver is opened again.
  static final class Program {
    public static void main(String[] arguments) {
      Path file = Path.of(arguments[0]);
      GantrySession second = GantrySession.open();
      GantrySession first = GantrySession.open();
      try {
        load(first, file);
      } catch (DeviceUnavailableException e) {
        System.out.println(NO_COMPAT + e.getMessage());
        return;
      }
      RingOptions options =
          new RingOptions(
              GPU,
              3,
              Recipes.SLOT_BYTES,
              Recipes.HOST_BYTES,
              TransferOptions.defaults().withTransport(Transport.STAGED).withThreads(4),
              true);
      try (PrefetchRing<Integer> ring =
          second.ring(
              options, new Batches<>(BATCHES, number -> RingContract.block(file, number)))) {
        take(ring, BATCHES / 2);
        first.close();
        take(ring, BATCHES / 2);
      }
      second.close();
      requireThatNoneCalled();
      kept().forEach(Cleanup::join);
      try (GantrySession third = GantrySession.open()) {
        load(third, file);
      }
      System.out.println(DONE);
    }

    private static void load(GantrySession session, Path file) {
      List<ExtentRequest> whole =
          List.of(new ExtentRequest(new Extent(file, 0, BATCHES * Recipes.BLOCK), 1));
      TransferOptions compat =
          TransferOptions.defaults().withTransport(Transport.COMPAT).withThreads(4);
      try (Loaded loaded = session.load(whole, GPU, compat)) {
        assertThat(TestFiles.firstDifference(loaded, whole)).isEmpty();
      }
    }

    private static void take(PrefetchRing<Integer> ring, int batches) {
      for (int i = 0; i < batches; i++) {
        ring.next().orElseThrow().close();
      }
    }

    private static List<Thread> kept() {
      return Thread.getAllStackTraces().keySet().stream()
          .filter(thread -> thread.getName().startsWith("gantry-kept"))
          .toList();
    }

    /// Checks in each idle thread that it has not called libcufile.
    private static void requireThatNoneCalled() {
      int threads = kept().size();
      assertThat(threads).isPositive();
      CountDownLatch all = new CountDownLatch(threads);
      List<Boolean> called = new CopyOnWriteArrayList<>();
      WorkerThreads.Started probes =
          WorkerThreads.start(
              threads,
              "probe-",
              () -> {
                all.countDown();
                await(all);
                called.add(CuFile.Callers.hasThisThread());
              });
      probes.join();
      assertThat(called).hasSize(threads).containsOnly(false);
    }
  }

  @Test
  void threadsThatAreKeptMayEndAfterTheDriverIsClosed() {
    Path file = TestFiles.write(folder.resolve("blocks"), 5, BATCHES * Recipes.BLOCK);
    ChildJvm.Result result = ChildJvm.run("256m", Map.of(), Program.class, file.toString());
    assertThat(result.exit()).as("%s", result).isZero();
    assumeTrue(!result.out().contains(NO_COMPAT), result.out());
    assertThat(result.out()).contains(DONE);
  }
}
