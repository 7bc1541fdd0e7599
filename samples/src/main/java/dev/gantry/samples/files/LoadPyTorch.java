// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.files;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import dev.gantry.samples.Usage;
import java.nio.file.Path;

/// Loads what `torch.save` has written, prints it, and writes it as safetensors.
///
/// `FILE` is a `.pt`, `.pth` or `.bin`, or a folder with a `pytorch_model.bin`; `OUT` ends in
/// `.safetensors`:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' LoadPyTorch.java FILE OUT
/// ```
public final class LoadPyTorch {
  private LoadPyTorch() {}

  public static void main(String[] arguments) {
    Usage.check("LoadPyTorch.java FILE OUT", arguments);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      // Numbers and strings beside the tensors, such as the epoch.
      weights.metadata().forEach((name, value) -> System.out.println(name + " = " + value));
      NDList tensors = weights.load(manager);
      for (NDArray tensor : tensors) {
        System.out.println(tensor.getName() + " " + tensor.getDataType() + " " + tensor.getShape());
      }
      WeightsWriter.builder().setFile(Path.of(arguments[1])).build().write(tensors);
    }
  }
}
