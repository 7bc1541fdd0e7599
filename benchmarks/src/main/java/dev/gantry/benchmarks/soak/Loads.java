// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.TransferException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Placement;
import dev.gantry.djl.TensorMemory;
import dev.gantry.djl.TensorSelection;
import dev.gantry.djl.Weights;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Loads weights in every supported manner and compares each byte. Any thread may close the arrays
/// that another thread loaded, so that memory is also freed on a thread that did not allocate it.
final class Loads extends Activity {
  private static final Fault[] FAULTS = {
    Fault.CANCEL, Fault.INTERRUPT, Fault.FILES, Fault.SESSION, Fault.CONSUMER, Fault.MANAGER
  };
  private static final Fault[] INTO_FAULTS = {
    Fault.CANCEL, Fault.INTERRUPT, Fault.FILES, Fault.SESSION, Fault.CONSUMER
  };

  private record View(NDArray array, String name, int row) {}

  private static final Queue<View> VIEWS = new ConcurrentLinkedQueue<>();
  private static final int MOST_VIEWS = 8;

  private final KnownWeights known;

  Loads(Scene scene, int number) {
    super(scene, number);
    this.known = scene.weights();
  }

  @Override
  void round() throws Exception {
    switch (random.nextInt(8)) {
      case 0 -> attempt("load", anyOf(FAULTS), this::load);
      case 1 -> attempt("lazy load", anyOf(Fault.FILES, Fault.MANAGER), this::lazy);
      case 2 -> attempt("load with a cast", anyOf(FAULTS), this::cast);
      case 3 -> attempt("load of rows", anyOf(FAULTS), this::rows);
      case 4 -> attempt("load of a rank's slices", anyOf(FAULTS), this::slices);
      case 5 -> attempt("load onto several devices", anyOf(FAULTS), this::place);
      case 6 -> attempt("copyTo", anyOf(INTO_FAULTS), this::copyTo);
      default -> attempt("loadMemory", anyOf(INTO_FAULTS), this::memory);
    }
    closeViews(MOST_VIEWS);
  }

  private LoadOptions.Builder options(Trial trial) {
    CachePolicy[] policies = CachePolicy.values();
    return LoadOptions.builder()
        .optThreads(1 + random.nextInt(4))
        .optRequestBytes(1L << (16 + random.nextInt(8)))
        .optCachePolicy(policies[random.nextInt(policies.length)])
        .optCancellation(trial.cancellation())
        .optProgress(trial.progress());
  }

  private Weights open(Trial trial) {
    return Weights.open(known.file(), trial.session());
  }

  private void load(Trial trial) {
    try (Weights weights = open(trial);
        NDManager manager = trial.manager(device)) {
      NDList list = weights.load(manager, options(trial).build());
      verified(known.verify(list));
      NDArray matrix = list.get(KnownWeights.MATRIX + "2.weight");
      int row = random.nextInt(known.part(matrix.getName()).rows());
      NDArray view = matrix.get(new NDIndex(row));
      view.detach();
      VIEWS.add(new View(view, matrix.getName(), row));
      if (random.nextBoolean()) {
        list.close();
      }
    }
  }

  private void closeViews(int most) {
    while (VIEWS.size() > most) {
      View view = VIEWS.poll();
      if (view != null) {
        try (NDArray array = view.array()) {
          verified(KnownWeights.verify(array, known.rows(view.name(), view.row(), view.row() + 1)));
        }
      }
    }
  }

  private void lazy(Trial trial) {
    try (Weights weights = open(trial);
        NDManager manager = trial.manager(Device.cpu())) {
      LoadOptions lazy = LoadOptions.builder().optLazy(true).optDevice(Device.cpu()).build();
      verified(known.verify(weights.load(manager, lazy)));
    }
  }

  private void cast(Trial trial) {
    try (Weights weights = open(trial);
        NDManager manager = trial.manager(device)) {
      TensorSelection matrices = TensorSelection.prefix(KnownWeights.MATRIX);
      for (NDArray array :
          weights.load(
              manager, options(trial).optSelection(matrices).optCast(DataType.FLOAT32).build())) {
        verified(KnownWeights.verify(array, known.widened(array.getName())));
      }
    }
  }

  private void rows(Trial trial) {
    String name = KnownWeights.MATRIX + random.nextInt(10) + ".weight";
    int rows = known.part(name).rows();
    int from = random.nextInt(rows);
    int to = from + 1 + random.nextInt(rows - from);
    TensorSelection selection = TensorSelection.names(List.of(name)).rows(name, from, to);
    try (Weights weights = open(trial);
        NDManager manager = trial.manager(device)) {
      NDList list = weights.load(manager, options(trial).optSelection(selection).build());
      verified(KnownWeights.verify(list.singletonOrThrow(), known.rows(name, from, to)));
    }
  }

  private static TensorSelection.Slices slices(int axis) {
    return TensorSelection.slices().along(KnownWeights.MATRIX + "{i}.weight", axis).build();
  }

  private void slices(Trial trial) {
    int axis = random.nextInt(2);
    int rank = random.nextInt(4);
    try (Weights weights = open(trial);
        NDManager manager = trial.manager(device)) {
      verifySlices(
          weights.load(manager, options(trial).optSlices(slices(axis), rank, 4).build()),
          axis,
          rank,
          4);
    }
  }

  private void verifySlices(NDList list, int axis, int rank, int world) {
    for (NDArray array : list) {
      String name = array.getName();
      int rows = known.part(name).rows() / world;
      verified(
          KnownWeights.verify(
              array,
              !name.startsWith(KnownWeights.MATRIX)
                  ? known.expected(name)
                  : axis == 0
                      ? known.rows(name, rank * rows, (rank + 1) * rows)
                      : known.columns(name, rank, world)));
    }
  }

  /// Loads onto all devices, the CPU among them if there is only one: the same tensors to each, or
  /// to each a rank's part.
  private void place(Trial trial) {
    List<Device> devices = new ArrayList<>(scene.devices());
    if (devices.size() == 1 && devices.getFirst().isGpu()) {
      devices.add(Device.cpu());
    }
    Device[] all = devices.toArray(Device[]::new);
    boolean replicated = random.nextBoolean();
    int axis = random.nextInt(2);
    try (Weights weights = open(trial);
        NDManager manager = trial.manager(device)) {
      List<NDList> lists =
          weights.load(
              manager,
              replicated ? Placement.replicated(all) : Placement.sliced(slices(axis), all),
              options(trial).build());
      for (int rank = 0; rank < all.length; rank++) {
        if (replicated) {
          verified(known.verify(lists.get(rank)));
        } else {
          verifySlices(lists.get(rank), axis, rank, all.length);
        }
      }
    }
  }

  private void copyTo(Trial trial) {
    try (Weights weights = open(trial);
        NDManager manager = trial.manager(device);
        Weights source = Weights.open(known.file(), scene.session())) {
      Map<String, NDArray> arrays = new LinkedHashMap<>();
      for (NDArray array : source.load(manager)) {
        arrays.put(array.getName(), array);
        if (known.part(array.getName()).dtype().equals("F32")) {
          array.muli(0);
        }
      }
      List<String> complete;
      TransferException failure = null;
      try {
        weights.copyTo(arrays, options(trial).build());
        complete = List.copyOf(arrays.keySet());
      } catch (TransferException.IncompleteRead e) {
        complete = e.complete();
        failure = e;
      }
      for (String name : complete) {
        verified(
            KnownWeights.verify(Objects.requireNonNull(arrays.get(name)), known.expected(name)));
      }
      if (failure != null) {
        throw failure;
      }
    }
  }

  private void memory(Trial trial) {
    try (Weights weights = open(trial);
        TensorMemory memory = weights.loadMemory(options(trial).build())) {
      for (String name : memory.tensors().keySet()) {
        verified(
            KnownWeights.verify(name, memory.segment(name).asByteBuffer(), known.expected(name)));
      }
    }
  }

  private void verified(long bytes) {
    scene.tally().verified(bytes);
  }

  @Override
  public void close() {
    closeViews(0);
  }
}
