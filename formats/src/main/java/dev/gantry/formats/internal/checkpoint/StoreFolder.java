// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.TemporaryName;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.MadeFolders;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Names the files and folders of checkpoints, and removes unfinished and surplus ones. Only files
/// with the names that a saver gives are removed, in folders with names that no other program
/// gives, so that a model which another tool keeps in the same folder is never removed.
/// Thread-safe.
public final class StoreFolder {
  /// The name of the file that makes a folder a checkpoint.
  public static final String MANIFEST = "manifest.json";

  /// Matches the names of checkpoints' folders on the disk and in another store.
  private static final Pattern CHECKPOINT =
      Pattern.compile("gantry-step-([0-9]+)(-[0-9]+)?(-[0-9a-f]{16})?");

  /// Matches the files of a group, see [UnsavedCheckpoint].
  private static final Pattern TENSORS =
      Pattern.compile(
          "[a-z][a-z0-9_]*"
              + "((-[0-9]{5,}-of-[0-9]{5,})?\\.safetensors|\\.safetensors\\.index\\.json)"
              // A folder of torch.distributed.checkpoint, where the saver was asked for one.
              + "|\\.metadata|__0_0\\.distcp");

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

  /// Makes the folder and its parents where they are missing; they stay, also if nothing is saved.
  void create() {
    MadeFolders.make(folders, root);
  }

  /// Makes a checkpoint's folder; after a failure, the folder does not exist.
  void make(Path checkpoint) {
    folders.create(checkpoint);
  }

  /// The folders with a checkpoint's name, complete or not.
  List<Path> checkpoints() {
    return FolderEntries.of(root).stream()
        .filter(child -> isCheckpoint(child.getFileName().toString()))
        .filter(child -> Files.isDirectory(child, LinkOption.NOFOLLOW_LINKS))
        .toList();
  }

  /// Looks at the checkpoints, complete or not, and their manifests.
  Map<Path, Optional<SourceFile.Identity>> look() {
    Map<Path, Optional<SourceFile.Identity>> found = new TreeMap<>();
    for (Path checkpoint : checkpoints()) {
      try {
        found.put(checkpoint, Optional.of(SourceFile.Identity.look(manifest(checkpoint))));
      } catch (TransferException e) {
        if (!e.isNotFound()) {
          throw e;
        }
        found.put(checkpoint, Optional.empty());
      }
    }
    return found;
  }

  /// The step in the name of a checkpoint's folder; empty if it does not fit a `long`.
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

  /// The name of a checkpoint's copy in another store: unique among all savers' copies, and the same for every process
  /// that copies this save.
  ///
  /// @param saver the name of the saver that copies it, 16 hexadecimal digits, for a save that names none
  static String copyName(CheckpointFolder checkpoint, String saver) {
    SequencedMap<String, Long> saves = checkpoint.head().history().saves();
    String origin = saves.isEmpty() ? saver : saves.lastEntry().getKey();
    return "gantry-step-" + checkpoint.step() + "-" + checkpoint.sequence() + "-" + origin;
  }

  /// Finds a free name for a checkpoint's folder: `gantry-step-N`, else `gantry-step-N-SEQUENCE` or the
  /// next free number after it.
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

  /// Removes the files of unfinished saves: checkpoints without a manifest, and temporary files.
  void removeLeftovers() {
    boolean removed = false;
    for (Path child : FolderEntries.of(root)) {
      // This also removes temporary files that writers without a saver's lock have left.
      removed |= folders.removeLeftover(child);
    }
    for (Path checkpoint : checkpoints()) {
      if (hasNoManifest(checkpoint)) {
        // The manifest may have been removed, and the removal may not be on the disk yet.
        folders.sync(checkpoint);
        removed |= empty(checkpoint);
      }
    }
    if (removed) {
      folders.sync(root);
    }
  }

  /// Removes a checkpoint. Its manifest goes first and durably, so that no crash leaves a manifest whose
  /// files are gone. The other removals are not synchronised, which could take the disk longer than the
  /// write: files that a crash brings back have no manifest, and are removed as leftovers.
  void remove(Path checkpoint) {
    folders.removeFile(manifest(checkpoint));
    folders.sync(checkpoint);
    empty(checkpoint);
  }

  /// Removes several checkpoints, also if some of them cannot be removed.
  ///
  /// @param removal removes one checkpoint
  /// @return the failures
  static List<TransferException> removeEach(
      List<CheckpointFolder> checkpoints, Consumer<CheckpointFolder> removal) {
    List<TransferException> failures = new ArrayList<>();
    for (CheckpointFolder one : checkpoints) {
      try {
        removal.accept(one);
      } catch (TransferException e) {
        failures.add(e);
      }
    }
    return failures;
  }

  /// Returns the message of the first failure, and how many others there are.
  static String words(List<TransferException> failures) {
    String first = String.valueOf(failures.getFirst().getMessage());
    return failures.size() == 1 ? first : first + " (and " + (failures.size() - 1) + " more)";
  }

  /// Removes the files of a failed save, unless its manifest exists.
  void removeUnfinished(Path checkpoint) {
    if (hasNoManifest(checkpoint)) {
      empty(checkpoint);
    }
  }

  /// Whether a checkpoint surely has no manifest; false if the file system cannot tell.
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

  /// Whether a name is one that a saver gives to a checkpoint's file.
  ///
  /// @param name the name relative to the folder of checkpoints, with `/` between folder and file
  static boolean isOfCheckpoint(String name) {
    int slash = name.indexOf('/');
    String file = name.substring(slash + 1);
    return slash > 0
        && isCheckpoint(name.substring(0, slash))
        && (file.equals(MANIFEST) || TENSORS.matcher(file).matches());
  }

  /// @return whether the file was a saver's that nobody is writing, and was removed
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
