// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.Training;
import dev.gantry.testing.HeapFaults;
import dev.gantry.testing.OwnProcess;
import dev.gantry.testing.RangeServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Lets each kind of worker find no heap at its first allocation, its second, and so on: `FOLDER MOST`, where `MOST`
/// bounds the points of each kind. Ends with 1 at an operation that does not end, that fails otherwise, or after which
/// the next is wrong; prints which points left something behind.
final class EveryAllocationProgram {
  private static final Duration LONGEST = Duration.ofSeconds(60);
  private static final Duration SETTLING = Duration.ofSeconds(2);
  private static final Duration LOOK = Duration.ofMillis(5);
  private static final int TENSORS = 6;
  private static final int VALUES = 2048;
  private static final int SAMPLES = 64;
  private static final int PLACE_FRAMES = 6;

  @FunctionalInterface
  private interface Operation {
    void run() throws Exception;
  }

  /// The memory and the descriptors that the process holds.
  private record Holdings(LiveResources.Snapshot memory, int descriptors) {
    static Holdings now(GantrySession session) throws IOException {
      session.freeIdle();
      return new Holdings(LiveResources.snapshot(), OwnProcess.programsDescriptors().size());
    }

    boolean isMoreThan(Holdings before) {
      return !memory.equals(before.memory) || descriptors > before.descriptors;
    }
  }

  private final Path folder;
  private final RangeServer server = new RangeServer();
  private final NDManager manager = NDManager.newBaseManager(Device.cpu(), "PyTorch");
  private final GantrySession session = GantrySession.open();
  private final Path file;
  private final String served;
  private int number;

  private EveryAllocationProgram(Path folder) throws IOException {
    this.folder = folder;
    WeightsFile written = new WeightsFile();
    for (int i = 0; i < TENSORS; i++) {
      double[] values = DoubleStream.iterate(i, one -> one + 1).limit(VALUES).toArray();
      written.tensor("t" + i, DType.F32, TensorShape.of(VALUES), values);
    }
    file = written.write(folder.resolve("model.safetensors"));
    served = server.put("served.safetensors", Files.readAllBytes(file)).toString();
    Path _ = ImageShards.write(folder.resolve("shards"), SAMPLES, 20);
  }

  public static void main(String[] arguments) throws Exception {
    // Each save is of a training of its own, which would be a warning, and so would be what fails.
    System.setProperty("org.slf4j.simpleLogger.log.dev.gantry", "off");
    var program = new EveryAllocationProgram(Path.of(arguments[0]));
    int most = Integer.parseInt(arguments[1]);
    Map<String, Operation> operations = new LinkedHashMap<>();
    operations.put("gantry-reader-", () -> program.load(program.file.toString(), program.session));
    operations.put("gantry-http-", () -> program.load(program.served, program.session));
    operations.put("gantry-part-", program::loadInParts);
    operations.put("gantry-ring-", program::epoch);
    operations.put("gantry-cache-", program::loadCached);
    operations.put("gantry-snapshot", () -> program.save(SaveMode.OVERLAPPED));
    operations.put("gantry-saver", () -> program.save(SaveMode.ASYNC));
    operations.put("caller loads", () -> program.load(program.file.toString(), program.session));
    operations.put("caller loads remotely", () -> program.load(program.served, program.session));
    operations.put("caller loads in parts", program::loadInParts);
    operations.put("caller reads batches", program::epoch);
    operations.put("caller caches", program::loadCached);
    operations.put("caller saves", () -> program.save(SaveMode.SYNC));
    operations.put("caller saves later", () -> program.save(SaveMode.ASYNC));
    operations.put("caller saves meanwhile", () -> program.save(SaveMode.OVERLAPPED));
    try {
      for (Map.Entry<String, Operation> each : operations.entrySet()) {
        program.everywhere(each.getKey(), each.getValue(), most);
      }
    } catch (Exception | AssertionError e) {
      e.printStackTrace(System.out);
      // Threads that do not end would keep the JVM.
      System.exit(1);
    }
    System.exit(0);
  }

  /// @param kind the prefix of the threads' names, and after a blank what they do
  private void everywhere(String kind, Operation operation, int most) throws Exception {
    String threads = kind.split(" ", -1)[0];
    operation.run();
    HeapFaults.begin(threads, 0);
    require(attempt(operation) == null, kind);
    int all = HeapFaults.end();
    int points = 0;
    int failed = 0;
    int left = 0;
    for (int point = 1; point <= all; point += Math.max(1, all / most)) {
      Holdings before = Holdings.now(session);
      HeapFaults.begin(threads, point);
      Throwable failure = attempt(operation);
      int _ = HeapFaults.end();
      OutOfMemoryError thrown = HeapFaults.thrown();
      if (thrown == null) {
        continue;
      }
      points++;
      if (failure != null && !isBy(failure, thrown)) {
        throw new AssertionError(kind + " at " + point + " fails otherwise", failure);
      }
      failed += failure == null ? 0 : 1;
      Throwable next = attempt(operation);
      if (next != null) {
        throw new AssertionError(kind + " at " + point + ": the next fails: " + next, thrown);
      }
      if (stays(before)) {
        left++;
        System.out.printf("%s: left by %d, %s%n", kind, point, place(thrown));
      }
    }
    System.out.printf(
        "%s: %d allocations, %d without heap, %d operations failed by that, %d left something%n",
        kind, all, points, failed, left);
  }

  /// Whether more is held than before, also a little later: the server of the tests closes its ends of connections when
  /// it has seen that the others are closed.
  private boolean stays(Holdings before) throws Exception {
    long begin = System.nanoTime();
    boolean more = Holdings.now(session).isMoreThan(before);
    while (more && System.nanoTime() - begin < SETTLING.toNanos()) {
      Thread.sleep(LOOK);
      more = Holdings.now(session).isMoreThan(before);
    }
    return more;
  }

  /// The innermost of Gantry's frames.
  private static String place(OutOfMemoryError thrown) {
    return Stream.of(thrown.getStackTrace())
        .filter(frame -> frame.getClassName().startsWith("dev.gantry."))
        .skip(1)
        .limit(PLACE_FRAMES)
        .map(frame -> frame.getFileName() + ":" + frame.getLineNumber())
        .collect(Collectors.joining(" < "));
  }

  /// @return what the operation failed by; null if it did not
  private static @Nullable Throwable attempt(Operation operation) throws Exception {
    FutureTask<@Nullable Throwable> task =
        new FutureTask<>(() -> {
          try {
            operation.run();
            return null;
          } catch (Exception | Error e) {
            return e;
          }
        });
    Thread thread = Thread.ofPlatform().daemon().name("caller").start(task);
    try {
      return task.get(LONGEST.toSeconds(), TimeUnit.SECONDS);
    } catch (TimeoutException _) {
      AssertionError stuck = new AssertionError("does not end", HeapFaults.thrown());
      stuck.setStackTrace(thread.getStackTrace());
      throw stuck;
    }
  }

  private static boolean isBy(Throwable failure, OutOfMemoryError thrown) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause.equals(thrown)) {
        return true;
      }
    }
    return false;
  }

  private static void require(boolean right, String what) {
    if (!right) {
      throw new IllegalStateException("wrong: " + what);
    }
  }

  private void load(String location, GantrySession own) {
    load(location, own, LoadOptions.defaults());
  }

  private void load(String location, GantrySession own, LoadOptions options) {
    try (Weights weights = Weights.open(location, own);
        NDList list = weights.load(manager, options)) {
      for (int i = 0; i < TENSORS; i++) {
        double[] values =
            Objects.requireNonNull(list.get("t" + i))
                .toType(DataType.FLOAT64, false)
                .toDoubleArray();
        require(values.length == VALUES && values[VALUES - 1] == i + VALUES - 1, "t" + i);
      }
    }
  }

  private void loadInParts() {
    load(
        file.toString(),
        session,
        LoadOptions.builder().slabBytes(2 * 4 * VALUES).optCast(DataType.FLOAT64).build());
  }

  private void epoch() {
    int taken = 0;
    try (ShardDataset dataset =
            ShardDataset.builder()
                .setPath(folder.resolve("shards"))
                .setSampling(8)
                .optSession(session)
                .build();
        NDManager own = manager.newSubManager()) {
      for (Batch batch : dataset.getData(own)) {
        try (batch) {
          taken += batch.getSize();
        }
      }
    }
    require(taken == SAMPLES, taken + " samples");
  }

  private void loadCached() throws IOException {
    String location =
        server.put("cached-" + ++number + ".safetensors", Files.readAllBytes(file)).toString();
    try (GantrySession own = GantrySession.open()) {
      own.cacheRemoteFiles(folder.resolve("cache"), 1 << 20);
      load(location, own);
      load(location, own);
    }
  }

  private void save(SaveMode mode) {
    int step = ++number;
    try (Training training = Fit.training();
        CheckpointSaver saver =
            CheckpointSaver.builder()
                .setPath(folder.resolve("run"))
                .optMode(mode)
                .optSession(session)
                .optKeepLast(2)
                .build()) {
      training.steps(0, 1);
      saver.prepare(training.model, training.trainer).join();
      var saved = saver.save(step, training.model, training.trainer);
      saver.await();
      var _ = saved.join();
      require(saver.latest().orElseThrow().step() == step, "the latest step");
    }
  }
}
