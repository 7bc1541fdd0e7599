// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.djl.WeightsWriter;
import java.nio.file.Path;
import java.util.Map;

/// Writes NDArrays as a safetensors file, which any reader of the format opens.
///
/// `FILE` is new or is replaced:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' WriteWeights.java FILE
/// ```
public final class WriteWeights {
  private WriteWeights() {}

  public static void main(String[] arguments) {
    Usage.check("WriteWeights.java FILE", arguments);
    Path file = Path.of(arguments[0]);
    try (NDManager manager = NDManager.newBaseManager()) {
      write(file, manager.randomNormal(new Shape(10, 80)), manager.zeros(new Shape(10)));
    }
    System.out.println("wrote " + file);
  }

  static void write(Path file, NDArray weight, NDArray bias) {
    WeightsWriter writer =
        WeightsWriter.builder().setFile(file).optMetadata("source", "my training").build();
    // The file is whole and on the disk when this returns.
    writer.write(Map.of("head.weight", weight, "head.bias", bias));
  }
}
