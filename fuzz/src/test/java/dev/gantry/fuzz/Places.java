// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/// The files and folders of inputs, in memory if the machine has `/dev/shm`.
public final class Places {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  /// The modification time of all files in folders, which is recorded in the indexes of the
  /// formats' tests.
  private static final FileTime MADE = FileTime.from(Instant.ofEpochSecond(981_173_106, 7));

  private static final Path ROOT = make();

  private Places() {}

  private static Path make() {
    String given = System.getProperty("gantry.fuzz.place");
    if (given != null) {
      return Path.of(given);
    }
    Path root = create();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(root)));
    return root;
  }

  /// Makes a folder for the inputs of one JVM.
  static Path create() {
    try {
      return Files.isWritable(SHARED_MEMORY)
          ? Files.createTempDirectory(SHARED_MEMORY, "gantry-fuzz")
          : Files.createTempDirectory("gantry-fuzz");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Deletes a folder that [#create] made.
  static void delete(Path folder) {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(each);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns a path in this JVM's folder.
  public static Path path(String name) {
    return ROOT.resolve(name);
  }

  static Path file(String name, byte[] bytes) {
    try {
      Path file = ROOT.resolve(name);
      Path folder = file.getParent();
      if (!Files.isDirectory(folder)) {
        Files.createDirectories(folder);
      }
      return Files.write(file, bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void setTime(Path file) {
    try {
      Path _ = Files.setLastModifiedTime(file, MADE);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Makes a folder with exactly these files.
  static Path folder(String name, Map<String, byte[]> files) {
    try {
      Path folder = Files.createDirectories(ROOT.resolve(name));
      Set<Path> wanted = new HashSet<>();
      List<Path> there = new ArrayList<>();
      try (Stream<Path> all = Files.walk(folder)) {
        all.filter(each -> !each.equals(folder)).forEach(there::add);
      }
      for (Path each : there.reversed()) {
        Files.delete(each);
      }
      files.forEach((file, bytes) -> {
        if (wanted.add(folder.resolve(file))) {
          setTime(file(name + "/" + file, bytes));
        }
      });
      return folder;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
