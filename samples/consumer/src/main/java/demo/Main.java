package demo;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.gantry.djl.Weights;
import java.nio.file.Path;

/// Loads weights and prints their names and shapes.
public final class Main {
  private Main() {}

  public static void main(String[] arguments) {
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(Path.of(arguments[0]))) {
      for (NDArray array : weights.load(manager)) {
        System.out.println(array.getName() + " " + array.getShape());
      }
    }
  }
}
