// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.HubServer;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Compares the cache with the cache that Python's `huggingface_hub` made of the same model;
/// `make_python_cache.py` recorded it.
@ExtendWith(NoLeaks.class)
class PythonCacheTest {
  private static final String MODEL = "org/tiny";
  private static final List<String> FILES = List.of("config.json", "sub/vocab.txt", "weights.bin");
  private static final String COMMIT = "33d48c2b26fae239bd3ac19fb1c991fca369d0a8";
  private static final String MISSING = "generation_config.json";

  @TempDir private Path folder;

  private static List<String> ofPython() throws IOException {
    try (var listing = PythonCacheTest.class.getResourceAsStream("/hub/python-cache.txt")) {
      return new String(listing.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
    }
  }

  /// Makes the files of a recorded listing.
  private void make(List<String> listing) throws IOException {
    for (String line : listing) {
      String[] parts = line.split(" ", 3);
      Path file = folder.resolve(parts[1]);
      Files.createDirectories(file.getParent());
      if (parts[0].equals("l")) {
        Files.createSymbolicLink(file, Path.of(parts[2]));
      } else {
        Files.write(file, Base64.getDecoder().decode(parts.length < 3 ? "" : parts[2]));
      }
    }
  }

  /// Lists the files in the script's format.
  private List<String> listing() throws IOException {
    List<String> lines = new ArrayList<>();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        String path = folder.relativize(file).toString();
        if (Files.isSymbolicLink(file)) {
          lines.add("l " + path + " " + Files.readSymbolicLink(file));
        } else if (Files.isRegularFile(file)
            && !path.endsWith("CACHEDIR.TAG")
            && !path.endsWith("gantry.lock")) {
          String bytes = Base64.getEncoder().encodeToString(Files.readAllBytes(file));
          lines.add(("f " + path + " " + bytes).strip());
        }
      }
    }
    return lines.stream().sorted().toList();
  }

  /// Returns the lines without the file lists, in which spaces do not matter; these lists are
  /// added to `trees`.
  private static List<String> withoutTrees(List<String> lines, List<String> trees)
      throws IOException {
    for (String line : lines) {
      if (line.contains("/trees/")) {
        String json =
            new String(Base64.getDecoder().decode(line.split(" ", -1)[2]), StandardCharsets.UTF_8);
        trees.add(HubTree.read(json).text());
      }
    }
    return lines.stream().filter(line -> !line.contains("/trees/")).toList();
  }

  private GantrySession session(Map<String, String> settings) {
    return GantrySession.open(FileCalls.ofPlatform(), List.of(HubStore.with(settings, 1000)));
  }

  private static Location.Remote file(String name) {
    return (Location.Remote) Location.of("hf://" + MODEL + "/" + name);
  }

  @Test
  void offlineWeReadWhatPythonCached() throws IOException {
    make(ofPython());
    try (GantrySession session =
        session(Map.of("HF_HUB_CACHE", folder.toString(), "HF_HUB_OFFLINE", "1"))) {
      assertThat(session.list((Location.Remote) Location.of("hf://org/tiny")).orElseThrow())
          .hasToString(
              "[hf://org/tiny@%1$s/config.json, hf://org/tiny@%1$s/weights.bin]".formatted(COMMIT));
      for (String name : FILES) {
        Path snapshot = folder.resolve("models--org--tiny/snapshots").resolve(COMMIT).resolve(name);
        assertThat(session.fetch(file(name))).isEqualTo(snapshot);
      }
      assertThatThrownBy(() -> session.openFile(file(MISSING)))
          .hasMessageContaining("HF_HUB_OFFLINE");
    }
  }

  @Test
  void ourCacheIsTheOneThatPythonMakes() throws IOException {
    Path python = Files.createDirectory(folder.resolve("python"));
    PythonCacheTest made = new PythonCacheTest();
    made.folder = python;
    made.make(ofPython());
    Path ours = Files.createDirectory(folder.resolve("ours"));
    folder = ours;
    try (HubServer server = new HubServer(1000)) {
      for (String name : FILES) {
        server.put(
            MODEL,
            name,
            Files.readAllBytes(
                python.resolve("models--org--tiny/snapshots").resolve(COMMIT).resolve(name)));
      }
      server.commit(MODEL, COMMIT);
      try (GantrySession session =
          session(Map.of("HF_HUB_CACHE", ours.toString(), "HF_ENDPOINT", server.endpoint()))) {
        assertThatThrownBy(() -> session.openFile(file(MISSING))).hasMessageContaining("404");
        assertThat(session.list((Location.Remote) Location.of("hf://org/tiny"))).isPresent();
        for (String name : FILES) {
          assertThat(session.fetch(file(name))).exists();
        }
      }
    }
    List<String> trees = new ArrayList<>();
    List<String> treesOfPython = new ArrayList<>();
    assertThat(withoutTrees(listing(), trees)).isEqualTo(withoutTrees(ofPython(), treesOfPython));
    assertThat(trees).isEqualTo(treesOfPython).hasSize(1);
  }
}
