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
import java.util.List;
import java.util.SequencedMap;

/// One load of the same tensors onto several devices: each byte is read once. All or nothing. For one
/// thread.
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

  /// @return the arrays of each device, in the devices' order
  public List<NDList> load(SequencedMap<String, StoredTensor> tensors) {
    List<Request> requests = loads.getFirst().requests(tensors);
    // Those that change take memory twice: so many at a time as a slab holds.
    List<List<Request>> parts =
        loads.getFirst().changesAny(requests)
            ? loads.getFirst().slabs(requests)
            : List.of(requests);
    long total = requests.stream().mapToLong(request -> request.tensor().bytes()).sum();
    List<NDList> arrays = devices.stream().map(_ -> new NDList(requests.size())).toList();
    return Cleanup.orUndo(
        () -> {
          long done = 0;
          for (List<Request> part : parts) {
            load(part, arrays, counted(done, total));
            done += part.stream().mapToLong(request -> request.tensor().bytes()).sum();
          }
          settings.report().accept(report);
          return arrays;
        },
        () -> Cleanup.runAll(arrays.stream().<Runnable>map(each -> each::close).toList()));
  }

  private TransferOptions counted(long before, long total) {
    ProgressListener progress = settings.transfer().progress();
    return settings
        .transfer()
        .withProgress((now, _) -> progress.onProgress(Math.min(before + now, total), total));
  }

  private void load(List<Request> part, List<NDList> arrays, TransferOptions options) {
    List<StoredTensor> tensors = part.stream().map(Request::tensor).toList();
    List<LoadedTensors> loaded = LoadedTensors.loadOnEach(session, tensors, devices, options);
    try {
      report = report.plus(loaded.getFirst().report());
      for (int i = 0; i < devices.size(); i++) {
        TensorLoad load = loads.get(i);
        NDList added = new NDList(part.size());
        try (Dequantiser dequantiser = load.dequantiser(part)) {
          load.wrap(tensors, loaded.get(i), added);
          // Gives up its share, so that what is cast goes at once.
          loaded.get(i).close();
          load.change(part, added, dequantiser);
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
