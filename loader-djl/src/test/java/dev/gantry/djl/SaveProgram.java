// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import java.nio.file.Path;

/// Saves a model of a given size, restores it, and prints the result. For a JVM of its own.
final class SaveProgram {
  private SaveProgram() {}

  /// @param arguments the folder, the number of arrays of 50 MB, and whether to save
  ///     asynchronously
  public static void main(String[] arguments) {
    ParametersBlock block = new ParametersBlock();
    try (Model model = Model.newInstance("large", "PyTorch");
        CheckpointSaver saver =
            CheckpointSaver.builder()
                .setPath(Path.of(arguments[0]))
                .optMode(Boolean.parseBoolean(arguments[2]) ? SaveMode.ASYNC : SaveMode.SYNC)
                .build()) {
      NDManager manager = model.getNDManager();
      for (int i = 0; i < Integer.parseInt(arguments[1]); i++) {
        block.with("array" + i, manager.ones(new Shape(12_500_000)).muli(i));
      }
      model.setBlock(block);
      var _ = saver.save(SaveRequest.builder().setStep(1).setModel(model).build());
      saver.await();
      for (var pair : block.getParameters()) {
        pair.getValue().getArray().subi(100);
      }
      saver.restoreLatest(model, null);
      StringBuilder text = new StringBuilder("means");
      for (var pair : block.getParameters()) {
        try (NDArray mean = pair.getValue().getArray().mean()) {
          text.append(' ').append(mean.getFloat());
        }
      }
      System.out.println(text);
    }
  }
}
