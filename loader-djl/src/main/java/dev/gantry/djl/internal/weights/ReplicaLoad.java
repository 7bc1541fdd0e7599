// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.weights.TensorLoad.Request;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Collections;
import java.util.List;
import java.util.SequencedMap;

/// One load of the same tensors, or of slices of them, onto several devices: each byte is read once. All or nothing.
/// For one thread.
public final class ReplicaLoad {
  private final GantrySession session;
  private final LoadSettings settings;
  private final List<dev.gantry.core.Device> devices;

  /// Of each device.
  private final List<TensorLoad> loads;

  private TransferReport report = TransferReport.NOTHING;

  public ReplicaLoad(
      GantrySession session,
      NDManager manager,
      List<Device> devices,
      LoadSettings settings,
      Scales scales) {
    this.session = session;
    this.settings = settings;
    this.devices = devices.stream().map(PyTorch::device).toList();
    this.loads =
        devices.stream()
            .map(device -> new TensorLoad(session, manager, settings.withDevice(device), scales))
            .toList();
  }

  /// The same tensors onto each device.
  ///
  /// @return the arrays of each device, in the devices' order
  public List<NDList> load(SequencedMap<String, StoredTensor> tensors) {
    return load(Collections.nCopies(devices.size(), tensors), true);
  }

  /// Onto each device slices of its own.
  ///
  /// @param tensors of each device, with the same names and types in the same order
  /// @return the arrays of each device, in the devices' order
  public List<NDList> loadSlices(List<SequencedMap<String, StoredTensor>> tensors) {
    return load(tensors, false);
  }

  private List<NDList> load(List<SequencedMap<String, StoredTensor>> tensors, boolean same) {
    List<List<Request>> requests =
        tensors.stream().map(each -> loads.getFirst().requests(each)).toList();
    List<Request> first = requests.getFirst();
    // Those that change take memory twice: so many at a time as a slab holds.
    List<Integer> parts =
        loads.getFirst().changesAny(first)
            ? loads.getFirst().slabs(first).stream().map(List::size).toList()
            : List.of(first.size());
    long total = bytes(requests, same);
    List<NDList> arrays = devices.stream().map(_ -> new NDList(first.size())).toList();
    return Cleanup.orUndo(
        () -> {
          long done = 0;
          int from = 0;
          for (int size : parts) {
            int start = from;
            from += size;
            int end = from;
            List<List<Request>> part =
                requests.stream().map(each -> each.subList(start, end)).toList();
            load(part, same, arrays, counted(done, total));
            done += bytes(part, same);
          }
          settings.report().accept(report);
          return arrays;
        },
        () -> Cleanup.runAll(arrays.stream().<Runnable>map(each -> each::close).toList()));
  }

  /// Replicas are read once.
  private static long bytes(List<List<Request>> requests, boolean same) {
    return requests.stream()
        .limit(same ? 1 : requests.size())
        .flatMap(List::stream)
        .mapToLong(request -> request.tensor().bytes())
        .sum();
  }

  private TransferOptions counted(long before, long total) {
    ProgressListener progress = settings.transfer().progress();
    return settings
        .transfer()
        .withProgress((now, _) -> progress.onProgress(Math.min(before + now, total), total));
  }

  private void load(
      List<List<Request>> part, boolean same, List<NDList> arrays, TransferOptions options) {
    List<List<StoredTensor>> tensors =
        part.stream().map(each -> each.stream().map(Request::tensor).toList()).toList();
    List<LoadedTensors> loaded =
        same
            ? LoadedTensors.loadOnEach(session, tensors.getFirst(), devices, options)
            : LoadedTensors.loadSlices(session, tensors, devices, options);
    try {
      report = report.plus(loaded.getFirst().report());
      for (int i = 0; i < devices.size(); i++) {
        TensorLoad load = loads.get(i);
        NDList added = new NDList(part.get(i).size());
        try (Dequantiser dequantiser = load.dequantiser(part.get(i))) {
          load.wrap(tensors.get(i), loaded.get(i), added);
          // Gives up its share, so that what is cast goes at once.
          loaded.get(i).close();
          load.change(part.get(i), added, dequantiser);
        } finally {
          // Closed with the others if this failed.
          arrays.get(i).addAll(added);
        }
      }
    } finally {
      Cleanup.runAll(loaded.stream().<Runnable>map(each -> each::close).toList());
    }
  }
}
