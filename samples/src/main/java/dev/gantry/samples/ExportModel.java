// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.core.Linear;
import dev.gantry.djl.Checkpoints;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.nio.file.Path;

/// Writes the latest checkpoint of a training as a folder whose tensors have the names that other
/// tools expect.
///
/// `CHECKPOINTS` is where SaveAndResume saves; `FOLDER` is new:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ExportModel.java CHECKPOINTS FOLDER
/// ```
public final class ExportModel {
  /// The names that other tools expect. The same rules load a folder of theirs.
  static final ParameterNames NAMES =
      ParameterNames.builder().rule("{kind}", "classifier.{kind}").build();

  private ExportModel() {}

  public static void main(String[] arguments) {
    Usage.check("ExportModel.java CHECKPOINTS FOLDER", arguments);
    export(Path.of(arguments[0]), Linear.builder().setUnits(10).build(), Path.of(arguments[1]));
    System.out.println("wrote " + arguments[1]);
  }

  static void export(Path checkpoints, Block block, Path folder) {
    try (Model model = Model.newInstance("points");
        Weights latest = Checkpoints.at(checkpoints).openLatest().orElseThrow()) {
      model.setBlock(block);
      // A checkpoint has the parameters' own names.
      latest.load(
          model.getNDManager(),
          model.getBlock(),
          ParameterNames.same(),
          LoadOptions.defaults(),
          new Shape(1, 64));

      WeightsWriter.builder().setFolder(folder).build().write(model.getBlock(), NAMES);
    }
  }
}
