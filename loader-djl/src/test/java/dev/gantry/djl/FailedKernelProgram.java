// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.TransferException;
import dev.gantry.djl.internal.training.Training;
import java.nio.file.Path;

/// Saves a training on a GPU after one of its kernels has failed. For a JVM of its own, because
/// the process cannot use that GPU afterwards.
final class FailedKernelProgram {
  private FailedKernelProgram() {}

  /// @param arguments the folder
  public static void main(String[] arguments) {
    Training training = Fit.training();
    CheckpointSaver saver = CheckpointSaver.builder().setPath(Path.of(arguments[0])).build();
    NDManager manager = training.trainer.getManager();
    NDArray _ = manager.ones(new Shape(3)).get(new NDIndex("{}", manager.create(new long[] {99})));
    try {
      var _ = saver.save(1, training.model, training.trainer);
      System.out.println("saved");
    } catch (TransferException failure) {
      System.out.println("refused: " + failure.getMessage());
    }
    // Closing the remaining resources can only fail.
    Runtime.getRuntime().halt(0);
  }
}
