// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.function.IntSupplier;

/// The file calls that Gantry makes: [Libc] makes them on Linux, [JdkFiles] elsewhere. Tests wrap
/// them in an implementation that fails on purpose.
///
/// Every call returns what the kernel does: a count or 0 on success, the negated `errno` on
/// failure. No call is repeated here after `EINTR`. Thread-safe.
public interface FileCalls {
  int O_RDONLY = 0;
  int O_WRONLY = 1;
  int O_RDWR = 2;
  int O_CREAT = 0x40;
  int O_EXCL = 0x80;
  int O_CLOEXEC = 0x80000;
  int F_RDLCK = 0;
  int F_WRLCK = 1;
  int F_UNLCK = 2;
  int LOCK_SH = 1;
  int LOCK_EX = 2;
  int LOCK_NB = 4;

  /// The implementation for this process.
  static FileCalls ofPlatform() {
    return JdkFiles.areChosen() ? JdkFiles.INSTANCE : Libc.INSTANCE;
  }

  /// Repeats a call while signals interrupt it.
  ///
  /// @return the last result
  static int retried(IntSupplier call) {
    int result = call.getAsInt();
    while (result == -Errno.EINTR.code()) {
      result = call.getAsInt();
    }
    return result;
  }

  /// `int open(const char *path, int flags, mode_t mode)`: returns a descriptor. The call does not
  /// wait for the other end of a pipe, or for a device; [#stat] tells the kind of file that was
  /// opened.
  int open(Path file, int flags, int mode);

  /// The `O_DIRECT` flag of this processor.
  int directFlag();

  /// The flag with which `open` refuses a symbolic link, by `ELOOP`, instead of following it; 0 if files are opened by
  /// the JDK.
  default int noFollowFlag() {
    return 0;
  }

  /// The number of the user as whom this process opens files, by `geteuid(2)`; -1 where users have no numbers.
  default int user() {
    return -1;
  }

  /// Why other libraries cannot use the descriptors, since they are not the kernel's; empty if
  /// they are the kernel's.
  default String descriptorAbsence() {
    return "";
  }

  /// `int close(int fd)`. Never repeat the call: the descriptor is closed even if the call returns
  /// `EINTR`.
  int close(int fd);

  /// `ssize_t pread(int fd, void *buf, size_t count, off_t offset)`: bytes read, 0 at the end of
  /// the file.
  long pread(int fd, MemorySegment target, long length, long offset);

  /// `ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)`: bytes written.
  long pwrite(int fd, MemorySegment source, long length, long offset);

  /// `int ftruncate(int fd, off_t length)`
  int ftruncate(int fd, long length);

  /// `int fallocate(int fd, int mode, off_t offset, off_t len)`
  int fallocate(int fd, int mode, long offset, long length);

  /// Makes the kernel begin to write a range of the page cache to the disk, by
  /// `sync_file_range(2)` with `SYNC_FILE_RANGE_WRITE`; does nothing on systems without this call.
  /// The result does not report errors of the disk; [#fsync] reports them.
  default int startWriteback(int fd, long offset, long length) {
    return 0;
  }

  /// The most descriptors that this process may have, by `getrlimit(RLIMIT_NOFILE)`.
  long mostDescriptors();

  /// `int fsync(int fd)`; also accepts a directory's descriptor.
  int fsync(int fd);

  /// `int rename(const char *old, const char *new)`
  int rename(Path from, Path to);

  /// `int mkdir(const char *path, mode_t mode)`
  int mkdir(Path folder, int mode);

  /// `int unlink(const char *path)`
  int unlink(Path file);

  /// `int rmdir(const char *path)`: the folder must be empty.
  int rmdir(Path folder);

  /// Size, identity and direct I/O alignment of an open file, by `statx(2)`.
  StatResult stat(int fd);

  /// The size of a page in bytes, by `sysconf(_SC_PAGESIZE)`.
  long pageBytes();

  /// `fcntl(fd, F_OFD_SETLK, …)`: takes or releases a lock of a range of the file. The open file
  /// description owns the lock until the description is closed or the process ends. The result is
  /// `-EAGAIN` if another open file description has the lock.
  ///
  /// @param kind [#F_RDLCK], [#F_WRLCK] or [#F_UNLCK]
  default int lock(int fd, int kind, long offset, long length) {
    return -Errno.ENOSYS.code();
  }

  /// `int flock(int fd, int operation)`: takes a lock of the whole file, which is independent of
  /// the locks of [#lock]. The open file description owns the lock until the description is closed
  /// or the process ends. The result is `-EAGAIN` if another open file description has the lock.
  ///
  /// @param operation [#LOCK_SH] or [#LOCK_EX], with [#LOCK_NB] so as not to wait
  default int flock(int fd, int operation) {
    return -Errno.ENOSYS.code();
  }

  /// The number of bytes of the range in the page cache, by `cachestat(2)`; `-ENOSYS` before Linux 6.5.
  long cachedBytes(int fd, long offset, long length);

  /// The number of bytes of the range in memory, by `mincore(2)` of a temporary mapping, in whole pages. The kernel
  /// reports all pages if the caller neither owns the file nor may write it.
  long mappedBytes(int fd, long offset, long length);

  /// The magic number of the file system that holds an open file, by `fstatfs(2)`.
  long fileSystem(int fd);

  /// `preadv2(2)` with `RWF_NOWAIT`: reads only bytes that are in memory; `-EAGAIN` if none are.
  long preadNoWait(int fd, MemorySegment target, long length, long offset);

  /// The result of `statx(2)`.
  ///
  /// @param status 0, or the negated `errno`
  /// @param size the file's size in bytes
  /// @param mode `st_mode`: the kind of file and its permissions
  /// @param owner the number of the user who owns the file; -1 where users have no numbers
  /// @param directMemoryAlignment bytes to which memory must be aligned for `O_DIRECT`; 0 if the
  ///     kernel does not say
  /// @param directOffsetAlignment bytes to which offsets and lengths must be aligned; 0 if the
  ///     kernel does not say
  /// @param device the device that has the file: its major number in the upper half, its minor
  ///     number in the lower half
  /// @param inode the file's number on that device
  /// @param modifiedNanos when the file was modified, in nanoseconds since 1970
  record StatResult(
      int status,
      long size,
      int mode,
      int owner,
      int directMemoryAlignment,
      int directOffsetAlignment,
      long device,
      long inode,
      long modifiedNanos) {
    static final int S_IFDIR = 0x4000;
    static final int S_IFREG = 0x8000;
    private static final int S_IFMT = 0xf000;
    private static final int WRITE_OF_OTHERS = 0022;

    /// Returns the result of a call that failed.
    public static StatResult failed(int status) {
      return new StatResult(status, 0, 0, -1, 0, 0, 0, 0, 0);
    }

    public boolean directory() {
      return (mode & S_IFMT) == S_IFDIR;
    }

    /// Whether the file is a regular one, and not a directory, pipe, socket or device.
    public boolean regular() {
      return (mode & S_IFMT) == S_IFREG;
    }

    /// Whether the file's group or all users may write to it.
    public boolean othersMayWrite() {
      return (mode & WRITE_OF_OTHERS) != 0;
    }

    /// Returns this result with another size.
    StatResult withSize(long bytes) {
      return new StatResult(
          status,
          bytes,
          mode,
          owner,
          directMemoryAlignment,
          directOffsetAlignment,
          device,
          inode,
          modifiedNanos);
    }

    /// Whether both results are of the same file, even in different states. On Windows, where the
    /// JDK gives no inode numbers, the answer is true for any two files.
    public boolean isSameFile(StatResult other) {
      return status >= 0 && other.status >= 0 && device == other.device && inode == other.inode;
    }
  }
}
