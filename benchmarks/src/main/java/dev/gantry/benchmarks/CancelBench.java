// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/// Measures how long a cancelled load takes to return while other loads run, also where the device
/// has too little memory for all of the loads.
final class CancelBench {
  private static final int TURNS = 15;

  /// The longest time from the start of a load to its cancellation.
  private static final int MAX_MILLIS = 100;

  private CancelBench() {}

  private enum End {
    LOADED,
    CANCELLED,
    NO_MEMORY
  }

  /// @param arguments the device, the file, and one or more numbers of concurrent loads
  static void main(String[] arguments) throws Exception {
    Device device = Device.parse(arguments[0]);
    Path file = Path.of(arguments[1]);
    try (GantrySession session = GantrySession.open();
        ExecutorService executor = Executors.newCachedThreadPool()) {
      List<StoredTensor> tensors =
          List.copyOf(WeightsFormats.open(session, Location.of(file)).tensors().values());
      LoadedTensors.load(session, tensors, device, TransferOptions.defaults()).close();
      System.out.println("| loads at once | cancel to return, ms: median | most | refused |");
      System.out.println("| --- | --- | --- | --- |");
      for (String loads : Arrays.copyOfRange(arguments, 2, arguments.length)) {
        List<Double> millis = new ArrayList<>();
        int refused = 0;
        for (int turn = 0; turn < TURNS; turn++) {
          refused += turn(session, executor, tensors, device, Integer.parseInt(loads), millis);
        }
        millis.sort(null);
        System.out.printf(
            "| %s | %.1f | %.1f | %d |%n",
            loads,
            millis.isEmpty() ? Double.NaN : millis.get(millis.size() / 2),
            millis.isEmpty() ? Double.NaN : millis.getLast(),
            refused);
      }
    }
  }

  /// Runs `count` concurrent loads, and cancels the first one.
  ///
  /// @param millis receives how long the cancelled load took to return, unless it ended before the
  ///     cancellation
  /// @return how many loads were refused for want of device memory
  private static int turn(
      GantrySession session,
      ExecutorService executor,
      List<StoredTensor> tensors,
      Device device,
      int count,
      List<Double> millis)
      throws InterruptedException, ExecutionException {
    Cancellation cancellation = new Cancellation();
    CountDownLatch all = new CountDownLatch(count);
    List<Future<End>> loads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      TransferOptions options =
          i > 0
              ? TransferOptions.defaults()
              : TransferOptions.defaults().withCancellation(cancellation);
      loads.add(
          executor.submit(() -> {
            all.countDown();
            all.await();
            return load(session, tensors, device, options);
          }));
    }
    all.await();
    TimeUnit.MILLISECONDS.sleep(ThreadLocalRandom.current().nextInt(MAX_MILLIS));
    long begun = System.nanoTime();
    cancellation.cancel();
    if (loads.getFirst().get() == End.CANCELLED) {
      millis.add((System.nanoTime() - begun) / 1e6);
    }
    int refused = 0;
    for (Future<End> load : loads) {
      refused += load.get() == End.NO_MEMORY ? 1 : 0;
    }
    return refused;
  }

  private static End load(
      GantrySession session, List<StoredTensor> tensors, Device device, TransferOptions options) {
    try {
      LoadedTensors.load(session, tensors, device, options).close();
      return End.LOADED;
    } catch (TransferException e) {
      return switch (e.failure()) {
        case Failure.Cancelled _ -> End.CANCELLED;
        case Failure.Cuda _ -> End.NO_MEMORY;
        default -> throw e;
      };
    }
  }
}
