// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/// The corpora of the modules' tests, as the first inputs of a search.
final class SeedFiles {
  /// The largest file that is used, because a search tries short inputs more often.
  static final int MAX_BYTES = 32_000;

  private static final Path PROJECT = Path.of(System.getProperty("gantry.project", ".."));

  private SeedFiles() {}

  /// Returns the files of a project folder and its subfolders whose names match.
  static Target.Seeds files(String folder, String names) {
    return () -> listed(PROJECT.resolve(folder), names).stream().map(SeedFiles::read).toList();
  }

  /// Returns each subfolder of a folder as one input, without files whose names match `without`.
  static Target.Seeds folders(String folder, String without) {
    return () -> {
      List<byte[]> all = new ArrayList<>();
      try (Stream<Path> folders = Files.list(PROJECT.resolve(folder))) {
        for (Path each : folders.filter(Files::isDirectory).sorted().toList()) {
          byte[] bundle = bundle(each, without);
          if (bundle.length <= MAX_BYTES) {
            all.add(bundle);
          }
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return all;
    };
  }

  static Target.Seeds texts(String... texts) {
    return () -> Stream.of(texts).map(text -> text.getBytes(StandardCharsets.UTF_8)).toList();
  }

  static byte[] bundle(Path folder, String without) {
    Map<String, byte[]> files = new TreeMap<>();
    for (Path file : walk(folder)) {
      String name = folder.relativize(file).toString();
      if (!name.matches(without)) {
        files.put(name, read(file));
      }
    }
    return Bundle.of(files);
  }

  private static List<Path> listed(Path folder, String names) {
    return walk(folder).stream()
        .filter(file -> file.getFileName().toString().matches(names))
        .filter(file -> file.toFile().length() <= MAX_BYTES)
        .toList();
  }

  private static List<Path> walk(Path folder) {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
