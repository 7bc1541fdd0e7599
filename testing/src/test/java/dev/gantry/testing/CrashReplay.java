// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.stream.Stream;

/// The states in which a power cut may leave a tree of files. The model promises no more than
/// POSIX and Linux's file systems do:
///
/// - The disk has a file's bytes and size of the time when the file was last synchronised.
/// - The disk has a folder's entries of the time when the folder was last synchronised. A file on
///   the disk whose entry is not on the disk is lost, and so are the contents of a folder whose
///   entry is not.
/// - The disk may also have any part of the later changes: any sectors of data, and any number of
///   the first entries, because file systems keep the order of entries.
///
/// A [Loss] determines this part. The replay is in memory, for trees of some megabytes.
public final class CrashReplay {
  /// A change or a synchronisation of the tree. Paths are relative to the tree's root.
  public sealed interface Step {
    /// Opens a file and gives it a number, which later steps use even if the file was renamed.
    ///
    /// @param created whether the call created the file, which is then empty
    record Open(int file, Path path, boolean created) implements Step {}

    /// @param bytes a copy on the heap, which nothing changes
    record Write(int file, long offset, MemorySegment bytes) implements Step {}

    /// Makes the file at least `size` bytes long.
    record Allocate(int file, long size) implements Step {}

    record Truncate(int file, long size) implements Step {}

    record SyncFile(int file) implements Step {}

    record SyncFolder(Path folder) implements Step {}

    /// Renames a file, and replaces any file of the new name.
    record Rename(Path from, Path to) implements Step {}

    record MakeFolder(Path folder) implements Step {}

    /// Removes the entry of a file or of an empty folder.
    record Remove(Path path) implements Step {}
  }

  /// The part of the changes without a synchronisation that is lost.
  public enum Loss {
    /// All changes are lost.
    EVERYTHING,
    /// Bytes and sizes are lost, but no entries.
    DATA,
    /// Bytes are lost, but neither sizes nor entries: the bytes read as zeros.
    DATA_BUT_SIZES,
    /// Some sectors, some sizes and some last entries are lost, as a seed determines.
    SOME
  }

  /// The unit that a disk writes completely or not at all.
  private static final int SECTOR_BYTES = 512;

  private final Map<Path, byte[]> files = new TreeMap<>();
  private final List<Path> folders = new ArrayList<>();

  private CrashReplay() {}

  /// Records the tree before the first step; all of it counts as synchronised.
  public static CrashReplay before(Path root) {
    CrashReplay replay = new CrashReplay();
    try (Stream<Path> paths = Files.walk(root)) {
      for (Path path : paths.filter(path -> !path.equals(root)).sorted().toList()) {
        if (Files.isDirectory(path)) {
          replay.folders.add(root.relativize(path));
        } else {
          replay.files.put(root.relativize(path), Files.readAllBytes(path));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return replay;
  }

  /// Makes a tree that a power cut after the last of `steps` may leave.
  ///
  /// @param seed determines the tree of [Loss#SOME]; other losses ignore the seed
  /// @param into the folder for the tree, which is missing or empty
  public void materialise(List<Step> steps, Loss loss, long seed, Path into) {
    Tree tree = new Tree(folders, files, steps);
    try {
      switch (loss) {
        case EVERYTHING -> write(tree.root, false, file -> file.onDisk, into);
        case DATA -> write(tree.root, true, file -> file.onDisk, into);
        case DATA_BUT_SIZES ->
            write(tree.root, true, file -> Arrays.copyOf(file.onDisk, file.now.length), into);
        case SOME -> {
          Random random = new Random(seed);
          int entries = random.nextInt(onDisk(steps), steps.size() + 1);
          Tree names = new Tree(folders, files, steps.subList(0, entries));
          write(names.root, true, file -> tree.files.get(file.number).someOf(random), into);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Checks trees of every loss that a power cut may leave, after every step.
  ///
  /// @param from the number of steps that were certainly made
  /// @param seeds the number of trees of [Loss#SOME] after each step
  /// @param scratch an empty folder, which is empty again afterwards
  /// @param check receives a description of the power cut, and the root of the tree
  public void everyCrash(
      List<Step> steps, int from, int seeds, Path scratch, BiConsumer<String, Path> check) {
    for (int made = from; made <= steps.size(); made++) {
      String last = made == 0 ? "the start" : "step " + made + ", " + steps.get(made - 1);
      for (Loss loss : Loss.values()) {
        for (long seed = 0; seed < (loss == Loss.SOME ? seeds : 1); seed++) {
          Path root = scratch.resolve("tree");
          materialise(steps.subList(0, made), loss, seed, root);
          check.accept("lost " + loss + " after " + last + ", seed " + seed, root);
          delete(root);
        }
      }
    }
  }

  private static void delete(Path tree) {
    try (Stream<Path> paths = Files.walk(tree)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns the number of steps whose entries are certainly on the disk, if file systems keep the
  /// order of entries.
  private static int onDisk(List<Step> steps) {
    int last = steps.size();
    while (last > 0 && !(steps.get(last - 1) instanceof Step.SyncFolder)) {
      last--;
    }
    return last;
  }

  private static void write(
      FolderNode folder, boolean now, Function<FileNode, byte[]> content, Path into)
      throws IOException {
    Files.createDirectories(into);
    for (Map.Entry<String, Node> entry : (now ? folder.now : folder.onDisk).entrySet()) {
      Path path = into.resolve(entry.getKey());
      switch (entry.getValue()) {
        case FileNode file -> Files.write(path, content.apply(file));
        case FolderNode inner -> write(inner, now, content, path);
      }
    }
  }

  private sealed interface Node {}

  private static final class FolderNode implements Node {
    final Map<String, Node> now = new TreeMap<>();
    Map<String, Node> onDisk = Map.of();

    void synchronise() {
      onDisk = new TreeMap<>(now);
    }
  }

  private static final class FileNode implements Node {
    /// The position in the order in which files were created; the same for any first part of the
    /// same steps.
    final int number;

    byte[] now = {};
    byte[] onDisk = {};
    final List<Step> later = new ArrayList<>();

    FileNode(int number) {
      this.number = number;
    }

    void change(Step step) {
      now = changed(now, step);
      later.add(step);
    }

    void synchronise() {
      onDisk = now;
      later.clear();
    }

    byte[] someOf(Random random) {
      byte[] some = onDisk;
      for (Step step : later) {
        if (step instanceof Step.Write(int file, long offset, MemorySegment bytes)) {
          for (long from = 0; from < bytes.byteSize(); from += SECTOR_BYTES) {
            if (random.nextBoolean()) {
              long length = Math.min(SECTOR_BYTES, bytes.byteSize() - from);
              MemorySegment sector = bytes.asSlice(from, length);
              some = changed(some, new Step.Write(file, offset + from, sector));
            }
          }
        } else if (random.nextBoolean()) {
          some = changed(some, step);
        }
      }
      return some;
    }

    private static byte[] changed(byte[] before, Step step) {
      return switch (step) {
        case Step.Write(_, long offset, MemorySegment bytes) -> {
          int end = Math.toIntExact(offset + bytes.byteSize());
          byte[] after = Arrays.copyOf(before, Math.max(before.length, end));
          MemorySegment.ofArray(after).asSlice(offset).copyFrom(bytes);
          yield after;
        }
        case Step.Allocate(_, long size) ->
            Arrays.copyOf(before, Math.max(before.length, Math.toIntExact(size)));
        case Step.Truncate(_, long size) -> Arrays.copyOf(before, Math.toIntExact(size));
        case Step.Open _,
            Step.SyncFile _,
            Step.SyncFolder _,
            Step.Rename _,
            Step.MakeFolder _,
            Step.Remove _ ->
            throw new IllegalArgumentException("no change of a file's bytes: " + step);
      };
    }
  }

  private static final class Tree {
    final FolderNode root = new FolderNode();
    final List<FileNode> files = new ArrayList<>();
    private final Map<Integer, FileNode> open = new HashMap<>();

    Tree(List<Path> folders, Map<Path, byte[]> initial, List<Step> steps) {
      folders.forEach(folder -> entries(folder).put(name(folder), new FolderNode()));
      initial.forEach((path, bytes) -> {
        FileNode file = newFile(path);
        file.now = bytes;
        file.synchronise();
      });
      root.synchronise();
      folders.forEach(folder -> folder(folder).synchronise());
      steps.forEach(this::apply);
    }

    private void apply(Step step) {
      switch (step) {
        case Step.Open(int file, Path path, boolean created) ->
            open.put(file, created ? newFile(path) : (FileNode) entries(path).get(name(path)));
        case Step.Write(int file, _, _) -> open.get(file).change(step);
        case Step.Allocate(int file, _) -> open.get(file).change(step);
        case Step.Truncate(int file, _) -> open.get(file).change(step);
        case Step.SyncFile(int file) -> open.get(file).synchronise();
        case Step.SyncFolder(Path folder) -> folder(folder).synchronise();
        case Step.Rename(Path from, Path to) ->
            entries(to).put(name(to), entries(from).remove(name(from)));
        case Step.MakeFolder(Path folder) -> entries(folder).put(name(folder), new FolderNode());
        case Step.Remove(Path path) -> entries(path).remove(name(path));
      }
    }

    private FileNode newFile(Path path) {
      FileNode file = new FileNode(files.size());
      files.add(file);
      entries(path).put(name(path), file);
      return file;
    }

    /// Returns the entries of a path's folder.
    private Map<String, Node> entries(Path path) {
      Path parent = path.getParent();
      return parent == null ? root.now : folder(parent).now;
    }

    private FolderNode folder(Path path) {
      return path.toString().isEmpty()
          ? root
          : (FolderNode) Objects.requireNonNull(entries(path).get(name(path)), path.toString());
    }

    private static String name(Path path) {
      return path.getFileName().toString();
    }
  }
}
