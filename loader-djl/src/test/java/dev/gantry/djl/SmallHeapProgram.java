// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import java.nio.file.Path;

/// Loads a checkpoint of one U8 vector and prints the sum of its end. For a JVM of its own.
final class SmallHeapProgram {
  private SmallHeapProgram() {}

  public static void main(String[] arguments) {
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      NDArray array = weights.load(manager).singletonOrThrow();
      long sum = array.get(new NDIndex("-1000:")).sum().getLong();
      System.out.println(array.size() + " bytes, the last 1000 sum to " + sum);
    }
  }
}
