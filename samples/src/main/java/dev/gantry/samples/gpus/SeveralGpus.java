// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.gpus;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Placement;
import dev.gantry.djl.TensorSelection;
import dev.gantry.djl.Weights;
import dev.gantry.samples.Usage;
import java.nio.file.Path;

/// Loads weights onto all GPUs of this machine: first all tensors onto each GPU, then a part of
/// each tensor onto each GPU, and last the tensors that one of several processes would load.
/// Without a GPU, the CPU is the only device.
///
/// `FILE` is a safetensors file, a folder of them, or an `index.json`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' SeveralGpus.java FILE
/// ```
public final class SeveralGpus {
  private SeveralGpus() {}

  public static void main(String[] arguments) {
    Usage.check("SeveralGpus.java FILE", arguments);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      Device[] devices = manager.getEngine().getDevices();
      for (NDList replica : weights.load(manager, Placement.replicated(devices))) {
        System.out.println(replica.size() + " arrays on " + replica.getFirst().getDevice());
      }

      LoadOptions told =
          LoadOptions.builder()
              .optReport(report -> report.devices().forEach(System.out::println))
              .build();
      weights.load(manager, Placement.replicated(devices), told).forEach(NDList::close);

      TensorSelection.Slices slices = TensorSelection.slices().along("{layer*}.weight", 0).build();
      for (NDList rank : weights.load(manager, Placement.sliced(slices, devices))) {
        System.out.println(rank.getFirst().getName() + " " + rank.getFirst().getShape());
      }

      int rank = Integer.parseInt(System.getenv().getOrDefault("RANK", "0"));
      int world = Integer.parseInt(System.getenv().getOrDefault("WORLD_SIZE", "1"));
      LoadOptions own = LoadOptions.builder().optSlices(slices, rank, world).build();
      System.out.println(weights.load(manager, own).size() + " arrays of rank " + rank);
    }
  }
}
