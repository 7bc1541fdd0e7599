// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.testing.CrashReplay.Step;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Records every call that changes a tree of files or makes a change durable, in one order, for
/// [CrashReplay]. Failed calls and calls of `close` are not recorded, because they do neither.
///
/// Writes by cuFile are not recorded. Calls are made one at a time, so that the recorded order is
/// the order in which they took effect. Thread-safe.
public final class RecordingFileCalls extends ForwardingFileCalls {
  private final Path root;
  private final List<Step> steps = new ArrayList<>();

  /// The numbers of files by their current names.
  private final Map<Path, Integer> files = new HashMap<>();

  /// The numbers of open files by their descriptors.
  private final Map<Integer, Integer> openFiles = new HashMap<>();

  private final Map<Integer, Path> openFolders = new HashMap<>();
  private int nextFile;

  /// @param root the tree; calls on files elsewhere are not recorded
  public RecordingFileCalls(FileCalls real, Path root) {
    super(real);
    this.root = root.toAbsolutePath().normalize();
  }

  /// Returns all steps so far.
  public synchronized List<Step> steps() {
    return List.copyOf(steps);
  }

  @Override
  public synchronized int open(Path file, int flags, int mode) {
    boolean existed = Files.exists(file);
    int descriptor = super.open(file, flags, mode);
    if (descriptor >= 0 && isInside(file)) {
      if (Files.isDirectory(file)) {
        openFolders.put(descriptor, inTree(file));
      } else {
        if (!files.containsKey(inTree(file))) {
          files.put(inTree(file), nextFile++);
          steps.add(new Step.Open(files.get(inTree(file)), inTree(file), !existed));
        }
        openFiles.put(descriptor, files.get(inTree(file)));
      }
    }
    return descriptor;
  }

  @Override
  public synchronized int close(int fd) {
    openFiles.remove(fd);
    openFolders.remove(fd);
    return super.close(fd);
  }

  @Override
  public synchronized long pwrite(int fd, MemorySegment source, long length, long offset) {
    long count = super.pwrite(fd, source, length, offset);
    Integer file = openFiles.get(fd);
    if (count > 0 && file != null) {
      byte[] bytes = source.asSlice(0, count).toArray(ValueLayout.JAVA_BYTE);
      steps.add(new Step.Write(file, offset, MemorySegment.ofArray(bytes).asReadOnly()));
    }
    return count;
  }

  @Override
  public synchronized int ftruncate(int fd, long length) {
    int result = super.ftruncate(fd, length);
    Integer file = openFiles.get(fd);
    if (result >= 0 && file != null) {
      steps.add(new Step.Truncate(file, length));
    }
    return result;
  }

  @Override
  public synchronized int fallocate(int fd, int mode, long offset, long length) {
    int result = super.fallocate(fd, mode, offset, length);
    Integer file = openFiles.get(fd);
    if (result >= 0 && file != null) {
      steps.add(new Step.Allocate(file, offset + length));
    }
    return result;
  }

  @Override
  public synchronized int fsync(int fd) {
    int result = super.fsync(fd);
    if (result >= 0 && openFiles.containsKey(fd)) {
      steps.add(new Step.SyncFile(openFiles.get(fd)));
    } else if (result >= 0 && openFolders.containsKey(fd)) {
      steps.add(new Step.SyncFolder(openFolders.get(fd)));
    }
    return result;
  }

  @Override
  public synchronized int rename(Path from, Path to) {
    int result = super.rename(from, to);
    if (result >= 0 && isInside(from) && isInside(to)) {
      steps.add(new Step.Rename(inTree(from), inTree(to)));
      Integer file = files.remove(inTree(from));
      files.remove(inTree(to));
      if (file != null) {
        files.put(inTree(to), file);
      }
    }
    return result;
  }

  @Override
  public synchronized int mkdir(Path folder, int mode) {
    int result = super.mkdir(folder, mode);
    if (result >= 0 && isInside(folder)) {
      steps.add(new Step.MakeFolder(inTree(folder)));
    }
    return result;
  }

  @Override
  public synchronized int unlink(Path file) {
    int result = super.unlink(file);
    if (result >= 0 && isInside(file)) {
      steps.add(new Step.Remove(inTree(file)));
      files.remove(inTree(file));
    }
    return result;
  }

  @Override
  public synchronized int rmdir(Path folder) {
    int result = super.rmdir(folder);
    if (result >= 0 && isInside(folder)) {
      steps.add(new Step.Remove(inTree(folder)));
    }
    return result;
  }

  private boolean isInside(Path path) {
    return path.toAbsolutePath().normalize().startsWith(root);
  }

  private Path inTree(Path path) {
    return root.relativize(path.toAbsolutePath().normalize());
  }
}
