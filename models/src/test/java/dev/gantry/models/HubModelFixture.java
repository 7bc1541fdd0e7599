// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/// The folders that the reference library wrote, and its answers.
abstract class HubModelFixture {
  static final Path HUB = Path.of(System.getProperty("gantry.hub", "src/test/resources/hub"));

  static final LoadOptions DEFAULTS = LoadOptions.defaults();

  /// The answers to texts with padding before them.
  static final String PADDED_LEFT = "expected-left.json";

  @TempDir Path temporary;

  static List<String> folders() throws IOException {
    try (Stream<Path> folders = Files.list(HUB)) {
      return folders
          .filter(Files::isDirectory)
          .map(folder -> folder.getFileName().toString())
          .sorted()
          .toList();
    }
  }

  @AfterEach
  void nothingIsLeft() {
    // The session keeps pinned buffers from load to load on a GPU.
    GantrySession.shared().freeIdle();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  static HubModel hub(String name) {
    return HubModel.of(HUB.resolve(name));
  }

  static Reference reference(String name) throws IOException {
    return Reference.of(HUB.resolve(name));
  }

  /// A copy of a folder with other tensors.
  Path changed(String name, Consumer<SequencedMap<String, NDArray>> change) throws IOException {
    Path folder = Files.createDirectories(temporary.resolve(name));
    Files.copy(HUB.resolve(name).resolve("config.json"), folder.resolve("config.json"));
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(HUB.resolve(name))) {
      SequencedMap<String, NDArray> tensors = new LinkedHashMap<>();
      weights.load(manager).forEach(array -> tensors.put(array.getName(), array));
      change.accept(tensors);
      WeightsWriter.builder().setFile(folder.resolve("model.safetensors")).build().write(tensors);
    }
    return folder;
  }
}
