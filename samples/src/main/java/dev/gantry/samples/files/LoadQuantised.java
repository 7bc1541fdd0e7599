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

/// Loads quantised weights, such as those of AWQ, GPTQ or NVFP4, as floating-point numbers, and prints their tensors.
///
/// `FOLDER` has safetensors files and a `config.json` with a `quantization_config`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' LoadQuantised.java FOLDER
/// ```
public final class LoadQuantised {
  private LoadQuantised() {}

  public static void main(String[] arguments) {
    Usage.check("LoadQuantised.java FOLDER", arguments);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      // Without a type, codes and scales would be loaded as they are stored.
      LoadOptions options = LoadOptions.builder().optCast(DataType.BFLOAT16).build();
      NDList tensors = weights.load(manager, options);
      for (NDArray tensor : tensors) {
        System.out.println(tensor.getName() + " " + tensor.getDataType() + " " + tensor.getShape());
      }
    }
  }
}
