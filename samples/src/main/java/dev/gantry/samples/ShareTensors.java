// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.TensorMemory;
import dev.gantry.djl.Weights;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;

/// Loads tensors as plain memory, for libraries other than DJL, and prints the mean of one.
///
/// `FOLDER` holds weights, and `NAME` is one of their F32 tensors.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ShareTensors.java FOLDER NAME
/// ```
public final class ShareTensors {
  private ShareTensors() {}

  public static void main(String[] arguments) {
    Usage.check("ShareTensors.java FOLDER NAME", arguments);
    Path folder = Path.of(arguments[0]);
    String name = arguments[1];
    try (Weights weights = Weights.open(folder);
        TensorMemory memory = weights.loadMemory(LoadOptions.defaults())) {
      // A direct buffer of the loaded memory: nothing is copied.
      FloatBuffer values =
          memory.segment(name).asByteBuffer().order(ByteOrder.nativeOrder()).asFloatBuffer();
      System.out.println(name + " has the mean " + mean(values));
    }
  }

  private static double mean(FloatBuffer values) {
    double sum = 0;
    for (int i = 0; i < values.limit(); i++) {
      sum += values.get(i);
    }
    return sum / values.limit();
  }
}
