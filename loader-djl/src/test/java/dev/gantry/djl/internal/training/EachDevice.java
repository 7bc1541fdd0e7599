// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// The values of a training on each of its devices.
public final class EachDevice {
  private EachDevice() {}

  /// Returns the bytes of the parameters and of the optimizer's states by name, for each device.
  public static List<Map<String, List<Byte>>> values(Trainer trainer) {
    List<Map<String, List<Byte>>> all = new ArrayList<>();
    for (int device = 0; device < trainer.getDevices().length; device++) {
      Map<String, List<Byte>> values = new LinkedHashMap<>();
      TrainerParts.of(trainer)
          .values(device)
          .forEach((name, array) -> values.put("model/" + name, bytes(array)));
      OptimizerState.of(trainer)
          .values(device)
          .forEach((name, array) -> values.put("optimizer/" + name, bytes(array)));
      all.add(values);
    }
    return all;
  }

  /// Returns how often each parameter was updated.
  public static Map<String, Integer> counts(Trainer trainer) {
    return OptimizerState.of(trainer).values().updateCounts();
  }

  private static List<Byte> bytes(NDArray array) {
    List<Byte> bytes = new ArrayList<>();
    for (byte each : array.toByteArray()) {
      bytes.add(each);
    }
    return bytes;
  }
}
