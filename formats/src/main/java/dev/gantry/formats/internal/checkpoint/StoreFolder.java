// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.MadeFolders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// The names in a folder of checkpoints, and the removal of what is not wanted there. Only files
/// with names that a saver gives are ever removed, in folders with names that no other program
/// gives: a model that another tool keeps beside ours has no manifest, and is no leftover.
/// Thread-safe.
public final class StoreFolder {
  /// The name of the file that makes a folder a checkpoint.
  public static final String MANIFEST = "manifest.json";

  /// On the disk, and in another store.
  private static final Pattern CHECKPOINT =
      Pattern.compile("gantry-step-([0-9]+)(-[0-9]+)?(-[0-9a-f]{16})?");

  /// The files of a group, see [UnsavedCheckpoint].
  private static final Pattern TENSORS =
      Pattern.compile(
          "[a-z][a-z0-9_]*"
              + "((-[0-9]{5,}-of-[0-9]{5,})?\\.safetensors|\\.safetensors\\.index\\.json)");

  private final Path root;
  private final GantrySession session;
  private final Folders folders;

  StoreFolder(GantrySession session, Path root) {
    this.session = session;
    this.root = root;
    this.folders = session.folders();
  }

  Path root() {
    return root;
  }

  GantrySession session() {
    return session;
  }

  /// Makes the folder where it is missing, and those above it, which stay.
  void create() {
    MadeFolders.make(folders, root);
  }

  /// Makes a checkpoint's folder, or leaves nothing.
  void make(Path checkpoint) {
    folders.create(checkpoint);
  }

  /// Folders with the name of a checkpoint, whole or not.
  List<Path> checkpoints() {
    return FolderEntries.of(root).stream()
        .filter(child -> isCheckpoint(child.getFileName().toString()))
        .filter(child -> Files.isDirectory(child, LinkOption.NOFOLLOW_LINKS))
        .toList();
  }

  /// The marks by which a manifest is known to be the same at two looks.
  ///
  /// @param key what the file system knows it by, if it does
  record ManifestStamp(@Nullable Object key, long size, FileTime modified) {}

  /// The checkpoints, whole or not, and their manifests as they are now.
  Map<Path, Optional<ManifestStamp>> look() {
    Map<Path, Optional<ManifestStamp>> found = new TreeMap<>();
    for (Path checkpoint : checkpoints()) {
      Path manifest = manifest(checkpoint);
      try {
        BasicFileAttributes now = Files.readAttributes(manifest, BasicFileAttributes.class);
        found.put(
            checkpoint,
            Optional.of(new ManifestStamp(now.fileKey(), now.size(), now.lastModifiedTime())));
      } catch (NoSuchFileException _) {
        found.put(checkpoint, Optional.empty());
      } catch (IOException e) {
        throw FileErrors.of("stat", manifest.toString(), e);
      }
    }
    return found;
  }

  /// The step of a checkpoint, by its folder's name; empty where that is no number that fits.
  public static OptionalLong step(Path checkpoint) {
    Matcher name = CHECKPOINT.matcher(checkpoint.getFileName().toString());
    try {
      return name.matches() ? OptionalLong.of(Long.parseLong(name.group(1))) : OptionalLong.empty();
    } catch (NumberFormatException _) {
      return OptionalLong.empty();
    }
  }

  static boolean isCheckpoint(String folderName) {
    return CHECKPOINT.matcher(folderName).matches();
  }

  /// The name of a checkpoint's copy in another store. No two savers give one name, and no saver gives one
  /// twice.
  ///
  /// @param saver 16 hexadecimal digits
  static String copyName(CheckpointFolder checkpoint, String saver) {
    return "gantry-step-" + checkpoint.step() + "-" + checkpoint.sequence() + "-" + saver;
  }

  /// A folder for a checkpoint, which is not there yet: `gantry-step-N`, or else
  /// `gantry-step-N-SEQUENCE` or the next number that is free.
  Path vacant(long step, long sequence) {
    Path name = root.resolve("gantry-step-" + step);
    for (long suffix = sequence; Files.exists(name, LinkOption.NOFOLLOW_LINKS); suffix++) {
      name = root.resolve("gantry-step-" + step + "-" + suffix);
    }
    return name;
  }

  /// The file that makes a folder a checkpoint.
  public static Path manifest(Path checkpoint) {
    return checkpoint.resolve(MANIFEST);
  }

  /// What saves that never ended have left: checkpoints without a manifest, and temporary files.
  void removeLeftovers() {
    boolean removed = false;
    for (Path child : FolderEntries.of(root)) {
      // Leftovers of other writers go, too: those writers do not ask for a saver's lock.
      removed |= folders.removeLeftover(child);
    }
    for (Path checkpoint : checkpoints()) {
      if (hasNoManifest(checkpoint)) {
        // It may have had one, whose removal is not on the disk yet.
        folders.sync(checkpoint);
        removed |= empty(checkpoint);
      }
    }
    if (removed) {
      folders.sync(root);
    }
  }

  /// Removes a checkpoint. Its manifest goes first, and durably: so there is never a manifest whose
  /// files are gone. The rest is not waited for, which takes a disk longer than it took to write
  /// some of it: what a crash brings back has no manifest, and goes with the leftovers.
  void remove(Path checkpoint) {
    folders.removeFile(manifest(checkpoint));
    folders.sync(checkpoint);
    empty(checkpoint);
  }

  /// Removes what a save that failed has left, unless it has come as far as its manifest.
  void removeUnfinished(Path checkpoint) {
    if (hasNoManifest(checkpoint)) {
      empty(checkpoint);
    }
  }

  /// False also where the file system does not say.
  static boolean hasNoManifest(Path checkpoint) {
    return Files.notExists(manifest(checkpoint), LinkOption.NOFOLLOW_LINKS);
  }

  /// Removes a saver's files, and the folder if nothing else is in it.
  ///
  /// @return whether the folder is gone
  private boolean empty(Path checkpoint) {
    boolean onlyOurs = true;
    for (Path child : FolderEntries.of(checkpoint)) {
      onlyOurs &= removeOurs(child);
    }
    if (onlyOurs) {
      folders.removeFolder(checkpoint);
    }
    return onlyOurs;
  }

  /// Whether a saver gives such a name to a file of a checkpoint.
  ///
  /// @param name from the folder of checkpoints on, with `/` between folder and file
  static boolean isOfCheckpoint(String name) {
    int slash = name.indexOf('/');
    String file = name.substring(slash + 1);
    return slash > 0
        && isCheckpoint(name.substring(0, slash))
        && (file.equals(MANIFEST) || TENSORS.matcher(file).matches());
  }

  /// @return whether it was a saver's file that nobody writes
  private boolean removeOurs(Path file) {
    boolean isOurs =
        (TemporaryName.is(file) || TENSORS.matcher(file.getFileName().toString()).matches())
            && !Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)
            && !folders.isBeingWritten(file);
    if (isOurs) {
      folders.removeFile(file);
    }
    return isOurs;
  }
}
