// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.gantry.core.MisuseException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// The C library's file and mapping calls on 64-bit Linux.
///
/// Blocking calls are never made as "critical" foreign calls, which would delay the JVM's safepoints for as long as the
/// disk takes. Each thread has its own `errno`.
public final class Libc implements FileCalls {
  /// The C library of this process.
  public static final Libc INSTANCE = new Libc();

  public static final int PROT_READ = 1;
  public static final int PROT_WRITE = 2;
  public static final int MAP_SHARED = 1;
  public static final int MAP_PRIVATE = 2;
  public static final int MAP_ANONYMOUS = 0x20;
  public static final int MAP_NORESERVE = 0x4000;
  public static final int MADV_HUGEPAGE = 14;
  public static final int MADV_POPULATE_WRITE = 23;
  public static final int POSIX_FADV_DONTNEED = 4;

  private static final int AT_EMPTY_PATH = 0x1000;
  private static final int STATX_BASIC_STATS = 0x7ff;
  private static final int STATX_DIOALIGN = 0x2000;
  private static final int RWF_NOWAIT = 8;
  private static final int SYNC_FILE_RANGE_WRITE = 2;
  private static final int RLIMIT_NOFILE = 7;
  private static final int F_SETFL = 4;
  private static final int F_OFD_SETLK = 37;
  private static final int O_NONBLOCK = 0x800;
  // asm-generic/unistd.h: the same number on every architecture, since the call came with Linux
  // 6.5.
  private static final long SYS_CACHESTAT = 451;
  private static final int SC_PAGESIZE = 30;

  private static final Linker LINKER = Linker.nativeLinker();
  private static final ThreadLocal<Scratch> SCRATCH =
      new ThreadLocal<>() {
        // A method reference would make the JVM generate a class during a process's first load.
        @Override
        protected Scratch initialValue() {
          return new Scratch();
        }
      };

  // On 64-bit Linux every integer and pointer is passed in a whole register, whatever its width,
  // even to variadic functions. So two prototypes serve all functions: linking a prototype costs
  // some 5 ms, and another function with it almost nothing.
  private static final FunctionDescriptor NUMBERS =
      FunctionDescriptor.of(
          JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

  /// The prototype with memory of the caller, which is kept open during the call.
  private static final FunctionDescriptor MEMORY =
      FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG);

  private static final Linker.Option ERRNO = Linker.Option.captureCallState("errno");

  // int open(const char *path, int flags, ...)
  private static final MethodHandle OPEN = function("open");
  // int close(int fd)
  private static final MethodHandle CLOSE = function("close");
  // ssize_t pread(int fd, void *buf, size_t count, off_t offset)
  private static final MethodHandle PREAD = function("pread", MEMORY);
  // ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)
  private static final MethodHandle PWRITE = function("pwrite", MEMORY);
  // ssize_t preadv2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags)
  private static final MethodHandle PREADV2 = function("preadv2");
  // int ftruncate(int fd, off_t length)
  private static final MethodHandle FTRUNCATE = function("ftruncate");
  // int fallocate(int fd, int mode, off_t offset, off_t len)
  private static final MethodHandle FALLOCATE = function("fallocate");
  // int sync_file_range(int fd, off64_t offset, off64_t nbytes, unsigned int flags)
  private static final MethodHandle SYNC_FILE_RANGE = function("sync_file_range");
  // int fsync(int fd)
  private static final MethodHandle FSYNC = function("fsync");
  // int fcntl(int fd, int cmd, ...)
  private static final MethodHandle FCNTL = function("fcntl");
  // int flock(int fd, int operation)
  private static final MethodHandle FLOCK = function("flock");
  // int rename(const char *oldpath, const char *newpath)
  private static final MethodHandle RENAME = function("rename");
  // int mkdir(const char *path, mode_t mode)
  private static final MethodHandle MKDIR = function("mkdir");
  // int unlink(const char *path)
  private static final MethodHandle UNLINK = function("unlink");
  // int rmdir(const char *path)
  private static final MethodHandle RMDIR = function("rmdir");
  // int statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *buf)
  private static final MethodHandle STATX = function("statx");
  // long syscall(SYS_cachestat, unsigned int fd, struct cachestat_range *, struct cachestat *,
  // unsigned int flags)
  private static final MethodHandle SYSCALL = function("syscall");
  // void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
  private static final MethodHandle MMAP = function("mmap");
  // int munmap(void *addr, size_t length)
  private static final MethodHandle MUNMAP = function("munmap");
  // int getrlimit(int resource, struct rlimit *rlim)
  private static final MethodHandle GETRLIMIT = function("getrlimit");
  // int fstatfs(int fd, struct statfs *buf)
  private static final MethodHandle FSTATFS = function("fstatfs");
  // int madvise(void *addr, size_t length, int advice)
  private static final MethodHandle MADVISE = function("madvise");
  // int mincore(void *addr, size_t length, unsigned char *vec)
  private static final MethodHandle MINCORE = function("mincore");
  // int posix_fadvise(int fd, off_t offset, off_t len, int advice)
  private static final MethodHandle POSIX_FADVISE = function("posix_fadvise");
  // uid_t geteuid(void)
  private static final MethodHandle GETEUID = function("geteuid");
  // long sysconf(int name)
  private static final long PAGE_BYTES = pageSize();

  private Libc() {}

  private static long pageSize() {
    long value = longCall(function("sysconf"), SC_PAGESIZE, 0, 0, 0, 0, 0);
    if (value <= 0) {
      throw new IllegalStateException("the size of a page is " + value);
    }
    return value;
  }

  @Override
  public long pageBytes() {
    return PAGE_BYTES;
  }

  @Override
  public int open(Path file, int flags, int mode) {
    try (Arena arena = Arena.ofConfined()) {
      long path = name(arena, file);
      int all = flags | O_CLOEXEC;
      int descriptor = intCall(OPEN, path, all | O_NONBLOCK, mode, 0, 0);
      if (descriptor == -Errno.EAGAIN.code()) {
        // Another program has a lease of the file. The kernel now asks it to release the lease;
        // this call waits for the release.
        descriptor = intCall(OPEN, path, all, mode, 0, 0);
      }
      if (descriptor >= 0) {
        // O_NONBLOCK is of no use on files, and cuFile refuses it.
        int _ = intCall(FCNTL, descriptor, F_SETFL, flags, 0, 0);
      }
      return descriptor;
    }
  }

  @Override
  public int directFlag() {
    // asm-generic's O_DIRECT is 040000; arm64 has its own value.
    return isArm() ? 0x10000 : 0x4000;
  }

  @Override
  public int noFollowFlag() {
    // O_NOFOLLOW is 0400000, but 0100000 on arm64.
    return isArm() ? 0x8000 : 0x20000;
  }

  private static boolean isArm() {
    return System.getProperty("os.arch").equals("aarch64");
  }

  @Override
  public int user() {
    return intCall(GETEUID, 0, 0, 0, 0, 0);
  }

  @Override
  public int close(int fd) {
    return intCall(CLOSE, fd, 0, 0, 0, 0);
  }

  @Override
  public long pread(int fd, MemorySegment target, long length, long offset) {
    checkLength(target, length);
    return memoryCall(PREAD, fd, target, length, offset);
  }

  @Override
  public long pwrite(int fd, MemorySegment source, long length, long offset) {
    checkLength(source, length);
    return memoryCall(PWRITE, fd, source, length, offset);
  }

  @Override
  public int ftruncate(int fd, long length) {
    return intCall(FTRUNCATE, fd, length, 0, 0, 0);
  }

  @Override
  public int fallocate(int fd, int mode, long offset, long length) {
    return intCall(FALLOCATE, fd, mode, offset, length, 0);
  }

  @Override
  public int startWriteback(int fd, long offset, long length) {
    return intCall(SYNC_FILE_RANGE, fd, offset, length, SYNC_FILE_RANGE_WRITE, 0);
  }

  @Override
  public int fsync(int fd) {
    return intCall(FSYNC, fd, 0, 0, 0, 0);
  }

  @Override
  public int rename(Path from, Path to) {
    try (Arena arena = Arena.ofConfined()) {
      return intCall(RENAME, name(arena, from), name(arena, to), 0, 0, 0);
    }
  }

  @Override
  public int mkdir(Path folder, int mode) {
    try (Arena arena = Arena.ofConfined()) {
      return intCall(MKDIR, name(arena, folder), mode, 0, 0, 0);
    }
  }

  @Override
  public int unlink(Path file) {
    return remove(UNLINK, file);
  }

  @Override
  public int rmdir(Path folder) {
    return remove(RMDIR, folder);
  }

  private static int remove(MethodHandle function, Path path) {
    try (Arena arena = Arena.ofConfined()) {
      return intCall(function, name(arena, path), 0, 0, 0, 0);
    }
  }

  /// Sets a variable of the environment that C libraries of this process see, or removes it.
  /// Java's environment is a copy from the process's start, and does not change. The C library
  /// does not guard the environment against readers on other threads, so change it rarely, and
  /// only for a moment.
  ///
  /// @param value null to remove the variable
  public static void setEnvironment(String name, @Nullable String value) {
    try (Arena arena = Arena.ofConfined()) {
      long variable = arena.allocateFrom(name).address();
      // int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char
      // *name)
      int status =
          value == null
              ? intCall(function("unsetenv"), variable, 0, 0, 0, 0)
              : intCall(function("setenv"), variable, arena.allocateFrom(value).address(), 1, 0, 0);
      if (status != 0) {
        throw new IllegalStateException("the environment cannot be changed: " + name);
      }
    }
  }

  /// Returns the address of a path's bytes for the kernel. The bytes may differ from the path's
  /// text, since a name need not be valid in the locale's encoding; the path's URI has every byte.
  private static long name(Arena arena, Path path) {
    if (!path.getFileSystem().equals(FileSystems.getDefault())) {
      throw new MisuseException(path.toUri() + " is in a file system of Java, and not on a disk");
    }
    String text = path.toString();
    if (text.chars().allMatch(c -> c < 0x80)) {
      return arena.allocateFrom(text).address();
    }
    String uri = path.toUri().getRawPath();
    MemorySegment name = arena.allocate(uri.length() + 1L);
    int length = 0;
    for (int i = 0; i < uri.length(); i++) {
      int value = uri.charAt(i);
      if (value == '%') {
        value = Integer.parseInt(uri, i + 1, i + 3, 16);
        i += 2;
      }
      name.set(JAVA_BYTE, length, (byte) value);
      length++;
    }
    if (name.get(JAVA_BYTE, length - 1) == '/') {
      // The URI of a folder ends in a slash, which would make the kernel follow a symbolic link.
      name.set(JAVA_BYTE, length - 1, (byte) 0);
    }
    return name.address();
  }

  @Override
  public StatResult stat(int fd) {
    Scratch scratch = SCRATCH.get();
    MemorySegment s = scratch.statx;
    int mask = STATX_BASIC_STATS | STATX_DIOALIGN;
    int status = intCall(STATX, fd, scratch.emptyPath.address(), AT_EMPTY_PATH, mask, s.address());
    if (status < 0) {
      // The call failed, so the struct still has the values of an earlier call.
      return StatResult.failed(status);
    }
    // Offsets of struct statx, linux/stat.h: mask 0, uid 20, mode 28, inode 32, size 40, mtime 112
    // and 120, dev 136 and 140, dio alignments 152 and 156.
    boolean aligned = (s.get(JAVA_INT, 0) & STATX_DIOALIGN) != 0;
    return new StatResult(
        status,
        s.get(JAVA_LONG, 40),
        Short.toUnsignedInt(s.get(JAVA_SHORT, 28)),
        s.get(JAVA_INT, 20),
        aligned ? s.get(JAVA_INT, 152) : 0,
        aligned ? s.get(JAVA_INT, 156) : 0,
        (long) s.get(JAVA_INT, 136) << 32 | Integer.toUnsignedLong(s.get(JAVA_INT, 140)),
        s.get(JAVA_LONG, 32),
        TimeUnit.SECONDS.toNanos(s.get(JAVA_LONG, 112)) + s.get(JAVA_INT, 120));
  }

  @Override
  public int lock(int fd, int kind, long offset, long length) {
    // Offsets of struct flock, bits/fcntl.h: type 0, whence 2, start 8, len 16, pid 24 (must be 0).
    MemorySegment flock = SCRATCH.get().flock;
    flock.fill((byte) 0);
    flock.set(JAVA_SHORT, 0, (short) kind);
    flock.set(JAVA_LONG, 8, offset);
    flock.set(JAVA_LONG, 16, length);
    return intCall(FCNTL, fd, F_OFD_SETLK, flock.address(), 0, 0);
  }

  @Override
  public int flock(int fd, int operation) {
    return intCall(FLOCK, fd, operation, 0, 0, 0);
  }

  @Override
  public long cachedBytes(int fd, long offset, long length) {
    Scratch scratch = SCRATCH.get();
    scratch.range.setAtIndex(JAVA_LONG, 0, offset);
    scratch.range.setAtIndex(JAVA_LONG, 1, length);
    long result =
        longCall(
            SYSCALL, SYS_CACHESTAT, fd, scratch.range.address(), scratch.cachestat.address(), 0, 0);
    return result < 0 ? result : scratch.cachestat.getAtIndex(JAVA_LONG, 0) * PAGE_BYTES;
  }

  @Override
  public long mappedBytes(int fd, long offset, long length) {
    long start = offset & -PAGE_BYTES;
    long bytes = offset + length - start;
    long address = mmap(bytes, PROT_READ, MAP_PRIVATE, fd, start);
    if (address < 0) {
      return address;
    }
    try (Arena arena = Arena.ofConfined()) {
      long pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
      MemorySegment resident = arena.allocate(pages);
      int status = mincore(address, bytes, resident);
      long count = 0;
      for (long page = 0; page < pages; page++) {
        count += resident.get(JAVA_BYTE, page) & 1;
      }
      return status < 0 ? status : count * PAGE_BYTES;
    } finally {
      int _ = munmap(address, bytes);
    }
  }

  @Override
  public long mostDescriptors() {
    MemorySegment limits = SCRATCH.get().rlimit;
    int status = intCall(GETRLIMIT, RLIMIT_NOFILE, limits.address(), 0, 0, 0);
    // The soft limit comes first. No limit is -1, as a signed number.
    long soft = limits.get(JAVA_LONG, 0);
    return status < 0 ? status : soft < 0 ? Long.MAX_VALUE : soft;
  }

  @Override
  public long fileSystem(int fd) {
    MemorySegment statfs = SCRATCH.get().statfs;
    int status = intCall(FSTATFS, fd, statfs.address(), 0, 0, 0);
    // The field f_type comes first in struct statfs.
    return status < 0 ? status : statfs.get(JAVA_LONG, 0);
  }

  @Override
  public long preadNoWait(int fd, MemorySegment target, long length, long offset) {
    checkLength(target, length);
    Scratch scratch = SCRATCH.get();
    scratch.iovec.setAtIndex(JAVA_LONG, 0, target.address());
    scratch.iovec.setAtIndex(JAVA_LONG, 1, length);
    return longCall(PREADV2, fd, scratch.iovec.address(), 1, offset, RWF_NOWAIT, 0);
  }

  /// `mmap`: the address, or the negated `errno`.
  public long mmap(long length, int protection, int flags, int fd, long offset) {
    return longCall(MMAP, 0, length, protection, flags, fd, offset);
  }

  /// `munmap`: 0, or the negated `errno`.
  public int munmap(long address, long length) {
    return intCall(MUNMAP, address, length, 0, 0, 0);
  }

  /// `mincore`: 0, or the negated `errno`.
  ///
  /// @param resident receives a byte for each page, whose lowest bit says whether the page is in
  ///     memory
  public int mincore(long address, long length, MemorySegment resident) {
    return intCall(MINCORE, address, length, resident.address(), 0, 0);
  }

  /// `madvise`: 0, or the negated `errno`.
  public int madvise(long address, long length, int advice) {
    return intCall(MADVISE, address, length, advice, 0, 0);
  }

  /// `posix_fadvise`: 0, or the negated error number, which this function returns instead of
  /// setting `errno`. A length of 0 means all bytes from `offset` on.
  public int fadvise(int fd, long offset, long length, int advice) {
    return -intCall(POSIX_FADVISE, fd, offset, length, advice, 0);
  }

  private static void checkLength(MemorySegment segment, long length) {
    if (length < 0 || length > segment.byteSize()) {
      throw new IndexOutOfBoundsException(
          "length " + length + " outside a segment of " + segment.byteSize() + " bytes");
    }
  }

  /// Returns the handle of a function whose arguments are integers and pointers, for [#intCall].
  public static MethodHandle function(String name) {
    return function(name, NUMBERS);
  }

  private static MethodHandle function(String name, FunctionDescriptor prototype) {
    return LINKER.downcallHandle(LINKER.defaultLookup().findOrThrow(name), prototype, ERRNO);
  }

  /// Calls a function that returns an `int` in the lower half of a register. Returns this `int`,
  /// or the negated `errno`. The caller keeps the memory at addresses among the arguments
  /// allocated during the call.
  public static int intCall(MethodHandle function, long a, long b, long c, long d, long e) {
    Scratch scratch = SCRATCH.get();
    try {
      int returned = (int) (long) function.invokeExact(scratch.errno, a, b, c, d, e, 0L);
      return returned == -1 ? -scratch.errno() : returned;
    } catch (Throwable failure) {
      throw NativeLibrary.unchecked(failure);
    }
  }

  /// Does the same as [#intCall] for a function that returns 64 bits.
  private static long longCall(
      MethodHandle function, long a, long b, long c, long d, long e, long f) {
    Scratch scratch = SCRATCH.get();
    try {
      long returned = (long) function.invokeExact(scratch.errno, a, b, c, d, e, f);
      return returned == -1 ? -scratch.errno() : returned;
    } catch (Throwable failure) {
      throw NativeLibrary.unchecked(failure);
    }
  }

  private static long memoryCall(
      MethodHandle function, int fd, MemorySegment memory, long length, long offset) {
    Scratch scratch = SCRATCH.get();
    try {
      long returned = (long) function.invokeExact(scratch.errno, (long) fd, memory, length, offset);
      return returned == -1 ? -scratch.errno() : returned;
    } catch (Throwable failure) {
      throw NativeLibrary.unchecked(failure);
    }
  }

  /// Memory of one thread for `errno` and the structs of arguments, so that no two calls share it.
  private static final class Scratch {
    private final MemorySegment all = Arena.ofAuto().allocate(1024, 8);
    final MemorySegment errno = all.asSlice(0, Linker.Option.captureStateLayout().byteSize());
    final MemorySegment emptyPath = all.asSlice(128, 1);
    final MemorySegment iovec = all.asSlice(136, 16);
    final MemorySegment rlimit = all.asSlice(152, 16);
    final MemorySegment range = all.asSlice(168, 16);
    final MemorySegment cachestat = all.asSlice(184, 40);
    final MemorySegment flock = all.asSlice(224, 32);
    final MemorySegment statx = all.asSlice(256, 256);
    final MemorySegment statfs = all.asSlice(512, 256);

    /// Reads `errno`, the only field of the struct on Linux.
    int errno() {
      return errno.get(JAVA_INT, 0);
    }
  }
}
