// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.files;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.samples.Usage;
import java.nio.file.Path;

/// Loads a GGUF file of llama.cpp, dequantised, and prints its tensors under the hub's names.
///
/// `FILE` is a `.gguf`, or one of a numbered set of them:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' LoadGguf.java FILE
/// ```
public final class LoadGguf {
  private LoadGguf() {}

  public static void main(String[] arguments) {
    Usage.check("LoadGguf.java FILE", arguments);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      System.out.println("architecture: " + weights.metadata().get("general.architecture"));
      // With a type, arrays have the values, which the device computes of the blocks that were
      // read.
      LoadOptions options = LoadOptions.builder().optCast(DataType.BFLOAT16).build();
      NDList tensors = weights.hubNames().load(manager, options);
      for (NDArray tensor : tensors) {
        System.out.println(tensor.getName() + " " + tensor.getDataType() + " " + tensor.getShape());
      }
    }
  }
}
