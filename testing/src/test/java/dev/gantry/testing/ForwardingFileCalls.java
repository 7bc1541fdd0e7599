// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.testing.FaultyFileCalls.Function;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.function.LongSupplier;

/// Forwards every call, for subclasses that observe or change a few calls.
public abstract class ForwardingFileCalls implements FileCalls {
  private final FileCalls real;

  protected ForwardingFileCalls(FileCalls real) {
    this.real = real;
  }

  /// Makes a call that returns one number.
  long call(Function function, LongSupplier call) {
    return call.getAsLong();
  }

  @Override
  public int open(Path file, int flags, int mode) {
    return (int) call(Function.OPEN, () -> real.open(file, flags, mode));
  }

  @Override
  public int directFlag() {
    return real.directFlag();
  }

  @Override
  public int noFollowFlag() {
    return real.noFollowFlag();
  }

  @Override
  public int user() {
    return real.user();
  }

  @Override
  public String descriptorAbsence() {
    return real.descriptorAbsence();
  }

  @Override
  public int close(int fd) {
    return real.close(fd);
  }

  @Override
  public long pread(int fd, MemorySegment target, long length, long offset) {
    return real.pread(fd, target, length, offset);
  }

  @Override
  public long pwrite(int fd, MemorySegment source, long length, long offset) {
    return real.pwrite(fd, source, length, offset);
  }

  @Override
  public int ftruncate(int fd, long length) {
    return (int) call(Function.FTRUNCATE, () -> real.ftruncate(fd, length));
  }

  @Override
  public int fallocate(int fd, int mode, long offset, long length) {
    return (int) call(Function.FALLOCATE, () -> real.fallocate(fd, mode, offset, length));
  }

  @Override
  public int startWriteback(int fd, long offset, long length) {
    return real.startWriteback(fd, offset, length);
  }

  @Override
  public int fsync(int fd) {
    return (int) call(Function.FSYNC, () -> real.fsync(fd));
  }

  @Override
  public int rename(Path from, Path to) {
    return (int) call(Function.RENAME, () -> real.rename(from, to));
  }

  @Override
  public int mkdir(Path folder, int mode) {
    return (int) call(Function.MKDIR, () -> real.mkdir(folder, mode));
  }

  @Override
  public int unlink(Path file) {
    return (int) call(Function.UNLINK, () -> real.unlink(file));
  }

  @Override
  public int rmdir(Path folder) {
    return (int) call(Function.RMDIR, () -> real.rmdir(folder));
  }

  @Override
  public StatResult stat(int fd) {
    return real.stat(fd);
  }

  @Override
  public int lock(int fd, int kind, long offset, long length) {
    return (int) call(Function.LOCK, () -> real.lock(fd, kind, offset, length));
  }

  @Override
  public long pageBytes() {
    return real.pageBytes();
  }

  @Override
  public long cachedBytes(int fd, long offset, long length) {
    return call(Function.CACHED_BYTES, () -> real.cachedBytes(fd, offset, length));
  }

  @Override
  public long mappedBytes(int fd, long offset, long length) {
    return call(Function.MAPPED_BYTES, () -> real.mappedBytes(fd, offset, length));
  }

  @Override
  public long mostDescriptors() {
    return call(Function.MAX_DESCRIPTORS, () -> real.mostDescriptors());
  }

  @Override
  public long fileSystem(int fd) {
    return call(Function.FILE_SYSTEM, () -> real.fileSystem(fd));
  }

  @Override
  public long preadNoWait(int fd, MemorySegment target, long length, long offset) {
    return real.preadNoWait(fd, target, length, offset);
  }
}
