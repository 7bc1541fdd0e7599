// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.testing.ForwardingFileCalls;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.function.Consumer;

/// Counts the calls that change files or make changes durable, which are the numbered steps of the
/// protocols, and runs an action just before one of them. Thread-safe.
final class ProtocolSteps extends ForwardingFileCalls {
  private final int point;
  private final Consumer<String> action;
  private boolean counting;
  private int count;

  /// @param point the number of the call, from 1, before which `action` runs with a description of
  ///     the call
  ProtocolSteps(FileCalls real, int point, Consumer<String> action) {
    super(real);
    this.point = point;
    this.action = action;
  }

  /// Begins to count; earlier calls do not count.
  synchronized void begin() {
    counting = true;
  }

  private synchronized void step(String what) {
    if (counting) {
      count++;
      if (count == point) {
        action.accept(count + " " + what);
      }
    }
  }

  @Override
  public int open(Path file, int flags, int mode) {
    if ((flags & O_CREAT) != 0) {
      step("create a file of " + file.getParent());
    }
    return super.open(file, flags, mode);
  }

  @Override
  public int fallocate(int fd, int mode, long offset, long length) {
    step("allocate");
    return super.fallocate(fd, mode, offset, length);
  }

  @Override
  public long pwrite(int fd, MemorySegment source, long length, long offset) {
    step("write");
    return super.pwrite(fd, source, length, offset);
  }

  @Override
  public int ftruncate(int fd, long length) {
    step("trim");
    return super.ftruncate(fd, length);
  }

  @Override
  public int fsync(int fd) {
    step("synchronise");
    return super.fsync(fd);
  }

  @Override
  public int rename(Path from, Path to) {
    step("rename to " + to);
    return super.rename(from, to);
  }

  @Override
  public int mkdir(Path folder, int mode) {
    step("make " + folder);
    return super.mkdir(folder, mode);
  }

  @Override
  public int unlink(Path file) {
    step("remove " + file);
    return super.unlink(file);
  }

  @Override
  public int rmdir(Path folder) {
    step("remove folder " + folder);
    return super.rmdir(folder);
  }
}
