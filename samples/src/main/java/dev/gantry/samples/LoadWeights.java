// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.nio.file.Path;

/// Loads weights into NDArrays and prints each array's name, type and shape, and how the bytes came.
///
/// `FILE` is a safetensors file, a folder of them, or an `index.json`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' LoadWeights.java FILE
/// ```
public final class LoadWeights {
  private LoadWeights() {}

  public static void main(String[] arguments) {
    Usage.check("LoadWeights.java FILE", arguments);
    // The manager's device: the first GPU, or host memory.
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      LoadOptions options =
          LoadOptions.builder()
              .optReport(report ->
                  System.out.printf(
                      "%,d bytes in %d ms, by transport: %s%n",
                      report.bytes(), report.elapsed().toMillis(), report.bytesByTransport()))
              .build();
      for (NDArray array : weights.load(manager, options)) {
        System.out.println(array.getName() + " " + array.getDataType() + " " + array.getShape());
      }
    }
    // The manager owned the arrays: their memory is free now.
  }
}
