// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// A folder that has a subfolder of pictures for each class. Classes and pictures are sorted by
/// name, as in torchvision's `ImageFolder`.
///
/// @param classes the names of the classes' folders, in order
public record ImageFolder(Path root, List<String> classes) {
  private static final Pattern ARCHIVE = Pattern.compile(".*\\.(tar|tar\\.gz|tgz)", Pattern.DOTALL);

  private static final Pattern PICTURE = Pattern.compile(".*\\.(jpg|jpeg|png)", Pattern.DOTALL);

  /// The names of pictures in formats that torchvision's `ImageFolder` reads but this command does
  /// not decode.
  private static final Pattern OTHER_PICTURE =
      Pattern.compile(".*\\.(ppm|bmp|pgm|tif|tiff|webp)", Pattern.DOTALL);

  /// @throws MalformedFileException if the folder has no subfolders, or a picture lies beside them
  public static ImageFolder open(Path root) throws IOException {
    List<Path> entries = entries(root);
    List<String> classes = folders(entries);
    if (classes.isEmpty()) {
      throw malformed(root, "the folder has no subfolder; each class needs one");
    }
    for (Path entry : entries) {
      if (isPicture(entry) && !Files.isDirectory(entry)) {
        throw malformed(entry, "this picture must lie in the folder of its class, not beside it");
      }
    }
    return new ImageFolder(root, classes);
  }

  /// Whether a location is a local folder without a tar archive.
  public static boolean mayBeOne(Location location) throws IOException {
    if (!(location instanceof Location.Local(Path root, _)) || !Files.isDirectory(root)) {
      return false;
    }
    try (Stream<Path> files = Files.list(root)) {
      return files.noneMatch(file -> isArchive(file.toString()));
    }
  }

  /// Whether a name is that of a tar archive.
  public static boolean isArchive(String name) {
    return ARCHIVE.matcher(name).matches();
  }

  /// Whether a path is a folder whose first folder has pictures.
  public static boolean isOne(Path root) throws IOException {
    if (!Files.isDirectory(root)) {
      return false;
    }
    List<String> folders = folders(entries(root));
    if (folders.isEmpty()) {
      return false;
    }
    try (Stream<Path> files = Files.list(root.resolve(folders.getFirst()))) {
      return files.anyMatch(file -> matches(PICTURE, file));
    }
  }

  private static List<String> folders(List<Path> entries) {
    return entries.stream()
        .filter(Files::isDirectory)
        .map(folder -> folder.getFileName().toString())
        .sorted()
        .toList();
  }

  private static List<Path> entries(Path root) throws IOException {
    try (Stream<Path> entries = Files.list(root)) {
      return entries.filter(entry -> !isHidden(entry)).sorted().toList();
    }
  }

  /// Returns the pictures of a class, including those in subfolders of its folder. Files with
  /// other suffixes are ignored, and so are hidden files, such as those that macOS writes beside
  /// pictures.
  ///
  /// @throws MalformedFileException if there is no picture, if a picture has a format that is not
  ///     decoded, or if a link has no target or is part of a cycle
  List<Path> pictures(String name) throws IOException {
    Path folder = root.resolve(name);
    try (Stream<Path> all = Files.walk(folder, FileVisitOption.FOLLOW_LINKS)) {
      List<Path> found =
          all.filter(ImageFolder::isPicture)
              .filter(file -> !Files.isDirectory(file) && !isHidden(file))
              .sorted(
                  Comparator.comparing((Path file) -> String.valueOf(file.getParent()))
                      .thenComparing(Path::getFileName))
              .toList();
      for (Path file : found) {
        if (matches(OTHER_PICTURE, file)) {
          throw malformed(file, "only JPEG and PNG are decoded");
        }
        if (!Files.isRegularFile(file)) {
          throw malformed(file, "this is not a file, or a link whose target does not exist");
        }
      }
      if (found.isEmpty()) {
        throw malformed(folder, "the class has no picture named .jpg, .jpeg or .png");
      }
      return found;
    } catch (UncheckedIOException e) {
      if (e.getCause() instanceof FileSystemLoopException loop) {
        throw malformed(Path.of(loop.getFile()), "this is a link to a folder that holds the link");
      }
      throw e;
    }
  }

  private static boolean isHidden(Path file) {
    return file.getFileName().toString().startsWith(".");
  }

  /// Whether the name is that of a picture, of whatever format.
  private static boolean isPicture(Path file) {
    return matches(PICTURE, file) || matches(OTHER_PICTURE, file);
  }

  private static boolean matches(Pattern names, Path file) {
    return names.matcher(file.toString().toLowerCase(Locale.ROOT)).matches();
  }

  private static MalformedFileException malformed(Path file, String detail) {
    return new MalformedFileException(file, 0, "invalid-image-folder", detail);
  }
}
