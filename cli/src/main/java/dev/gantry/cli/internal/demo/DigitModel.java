package dev.gantry.cli.internal.demo;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// The weights of the classifier of digits that [ServeModel][dev.gantry.samples.ServeModel] serves, in
/// three files that safetensors' own writer wrote, with the answers that it must give.
public final class DigitModel {
  static final String EXPECTED = "expected.json";
  private static final List<String> FILES =
      List.of(
          "model.safetensors.index.json",
          "model-00001-of-00003.safetensors",
          "model-00002-of-00003.safetensors",
          "model-00003-of-00003.safetensors",
          EXPECTED);

  private DigitModel() {}

  /// Copies the weights and the expected answers into a new folder.
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
