package dev.gantry.cli.internal.demo;

import ai.djl.ndarray.NDList;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import dev.gantry.djl.ParameterNames;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/// A classifier of digits whose weights lie beside this class as a sharded checkpoint, written by
/// safetensors' own writer, with the answers that it must give.
public final class DigitModel {
  /// DJL numbers a block's children; the checkpoint names its layers.
  static final ParameterNames NAMES =
      ParameterNames.of(
          Map.of(
              "01Linear_weight", "fc1.weight",
              "01Linear_bias", "fc1.bias",
              "03Linear_weight", "fc2.weight",
              "03Linear_bias", "fc2.bias",
              "05Linear_weight", "head.weight",
              "05Linear_bias", "head.bias"));

  static final String EXPECTED = "expected.json";
  private static final List<String> FILES =
      List.of(
          "model.safetensors.index.json",
          "model-00001-of-00003.safetensors",
          "model-00002-of-00003.safetensors",
          "model-00003-of-00003.safetensors",
          EXPECTED);

  private DigitModel() {}

  /// The layers, with parameters that are not there yet.
  static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(96).build())
        .add(list -> new NDList(Activation.relu(list.singletonOrThrow())))
        .add(Linear.builder().setUnits(80).build())
        .add(list -> new NDList(Activation.relu(list.singletonOrThrow())))
        .add(Linear.builder().setUnits(10).build());
  }

  /// Copies the checkpoint and what is expected of it into a new folder.
  public static Path extract(Path parent) throws IOException {
    Path folder = Files.createDirectory(parent.resolve("digits"));
    for (String file : FILES) {
      try (InputStream in = DigitModel.class.getResourceAsStream("/model/" + file)) {
        if (in == null) {
          throw new FileNotFoundException("/model/" + file + " is not in the jar");
        }
        Files.copy(in, folder.resolve(file));
      }
    }
    return folder;
  }
}
