package dev.gantry.formats.checkpoint;

import dev.gantry.core.commit.Folders;
import dev.gantry.core.commit.TemporaryName;
import dev.gantry.formats.internal.FileErrors;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;

/// The names in a folder of checkpoints, and the removal of what is not wanted there. Only files
/// with names that a saver gives are ever removed. Thread-safe.
final class StoreFolder {
  private static final Pattern CHECKPOINT = Pattern.compile("step-[0-9]+(-[0-9]+)?");
  private static final Pattern TENSORS =
      Pattern.compile(".*\\.safetensors(\\.index\\.json)?", Pattern.DOTALL);

  private final Path root;
  private final Folders folders;

  StoreFolder(Path root, Folders folders) {
    this.root = root;
    this.folders = folders;
  }

  Path root() {
    return root;
  }

  /// Makes the folder where it is missing, and those above it.
  void create() {
    create(root.toAbsolutePath().normalize());
  }

  private void create(Path folder) {
    if (!Files.isDirectory(folder)) {
      Path parent = folder.getParent();
      if (parent != null) {
        create(parent);
      }
      folders.create(folder);
    }
  }

  /// Folders with the name of a checkpoint, whole or not.
  List<Path> checkpoints() {
    return children(root).stream()
        .filter(child -> CHECKPOINT.matcher(child.getFileName().toString()).matches())
        .filter(child -> Files.isDirectory(child, LinkOption.NOFOLLOW_LINKS))
        .toList();
  }

  /// A folder for a checkpoint, which is not there yet.
  ///
  /// @param sequence which no other checkpoint here has
  Path vacant(long step, long sequence) {
    Path plain = root.resolve("step-" + step);
    return Files.exists(plain, LinkOption.NOFOLLOW_LINKS)
        ? root.resolve("step-" + step + "-" + sequence)
        : plain;
  }

  static Path manifest(Path checkpoint) {
    return checkpoint.resolve(Manifest.FILE_NAME);
  }

  /// What saves that never ended have left: checkpoints without a manifest, and temporary files.
  void removeLeftovers() {
    boolean removed = false;
    for (Path child : children(root)) {
      if (TemporaryName.is(child)) {
        folders.removeFile(child);
        removed = true;
      }
    }
    for (Path checkpoint : checkpoints()) {
      if (!Files.exists(manifest(checkpoint), LinkOption.NOFOLLOW_LINKS)) {
        removed |= empty(checkpoint);
      }
    }
    if (removed) {
      folders.sync(root);
    }
  }

  /// Removes a checkpoint. Its manifest goes first, and durably: so there is never a manifest whose
  /// files are gone.
  void remove(Path checkpoint) {
    folders.removeFile(manifest(checkpoint));
    folders.sync(checkpoint);
    empty(checkpoint);
    folders.sync(root);
  }

  /// Removes a saver's files, and the folder if nothing else is in it.
  ///
  /// @return whether the folder is gone
  private boolean empty(Path checkpoint) {
    boolean onlyOurs = true;
    for (Path child : children(checkpoint)) {
      if (isOurs(child)) {
        folders.removeFile(child);
      } else {
        onlyOurs = false;
      }
    }
    if (onlyOurs) {
      folders.removeFolder(checkpoint);
    }
    return onlyOurs;
  }

  private static boolean isOurs(Path file) {
    return (TemporaryName.is(file) || TENSORS.matcher(file.getFileName().toString()).matches())
        && !Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS);
  }

  /// Nothing where the folder is gone.
  private static List<Path> children(Path folder) {
    List<Path> children = new ArrayList<>();
    try (DirectoryStream<Path> stream = Files.newDirectoryStream(folder)) {
      stream.forEach(children::add);
    } catch (NoSuchFileException | NotDirectoryException _) {
      return List.of();
    } catch (DirectoryIteratorException e) {
      throw FileErrors.of("list", folder.toString(), Objects.requireNonNull(e.getCause()));
    } catch (IOException e) {
      throw FileErrors.of("list", folder.toString(), e);
    }
    return children;
  }
}
