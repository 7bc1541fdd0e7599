// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/// The C library's file and mapping calls on 64-bit Linux.
///
/// Blocking calls are never "critical" foreign calls, which would delay safepoints for as long as the
/// disk takes. `errno` is captured per thread.
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
  public static final int POSIX_FADV_DONTNEED = 4;

  private static final int AT_EMPTY_PATH = 0x1000;
  private static final int STATX_BASIC_STATS = 0x7ff;
  private static final int STATX_DIOALIGN = 0x2000;
  private static final int S_IFMT = 0xf000;
  private static final int S_IFDIR = 0x4000;
  private static final int RWF_NOWAIT = 8;
  private static final int RLIMIT_NOFILE = 7;
  // asm-generic/unistd.h; the same number on every architecture since it was added in Linux 6.5.
  private static final long SYS_CACHESTAT = 451;
  private static final int SC_PAGESIZE = 30;

  private static final long ERRNO_OFFSET =
      Linker.Option.captureStateLayout().byteOffset(MemoryLayout.PathElement.groupElement("errno"));

  private static final Linker LINKER = Linker.nativeLinker();
  private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

  // int open(const char *path, int flags, ...)
  private static final MethodHandle OPEN =
      variadic("open", 2, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT);
  // int close(int fd)
  private static final MethodHandle CLOSE = call("close", JAVA_INT, JAVA_INT);
  // ssize_t pread(int fd, void *buf, size_t count, off_t offset)
  private static final MethodHandle PREAD =
      call("pread", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG);
  // ssize_t pwrite(int fd, const void *buf, size_t count, off_t offset)
  private static final MethodHandle PWRITE =
      call("pwrite", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG);
  // ssize_t preadv2(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags)
  private static final MethodHandle PREADV2 =
      call("preadv2", JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT, JAVA_LONG, JAVA_INT);
  // int ftruncate(int fd, off_t length)
  private static final MethodHandle FTRUNCATE = call("ftruncate", JAVA_INT, JAVA_INT, JAVA_LONG);
  // int fallocate(int fd, int mode, off_t offset, off_t len)
  private static final MethodHandle FALLOCATE =
      call("fallocate", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);
  // int fsync(int fd)
  private static final MethodHandle FSYNC = call("fsync", JAVA_INT, JAVA_INT);
  // int rename(const char *oldpath, const char *newpath)
  private static final MethodHandle RENAME = call("rename", JAVA_INT, ADDRESS, ADDRESS);
  // int mkdir(const char *path, mode_t mode)
  private static final MethodHandle MKDIR = call("mkdir", JAVA_INT, ADDRESS, JAVA_INT);
  // int unlink(const char *path)
  private static final MethodHandle UNLINK = call("unlink", JAVA_INT, ADDRESS);
  // int rmdir(const char *path)
  private static final MethodHandle RMDIR = call("rmdir", JAVA_INT, ADDRESS);
  // int statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *buf)
  private static final MethodHandle STATX =
      call("statx", JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS);
  // long syscall(SYS_cachestat, unsigned int fd, struct cachestat_range *, struct cachestat *,
  // unsigned int flags)
  private static final MethodHandle CACHESTAT =
      variadic("syscall", 1, JAVA_LONG, JAVA_LONG, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
  // void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
  private static final MethodHandle MMAP =
      call("mmap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG);
  // int munmap(void *addr, size_t length)
  private static final MethodHandle MUNMAP = call("munmap", JAVA_INT, JAVA_LONG, JAVA_LONG);
  // int getrlimit(int resource, struct rlimit *rlim)
  private static final MethodHandle GETRLIMIT = call("getrlimit", JAVA_INT, JAVA_INT, ADDRESS);
  // int fstatfs(int fd, struct statfs *buf)
  private static final MethodHandle FSTATFS = call("fstatfs", JAVA_INT, JAVA_INT, ADDRESS);
  // int madvise(void *addr, size_t length, int advice)
  private static final MethodHandle MADVISE =
      call("madvise", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);
  // int posix_fadvise(int fd, off_t offset, off_t len, int advice)
  private static final MethodHandle POSIX_FADVISE =
      call("posix_fadvise", JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);

  // long sysconf(int name)
  private static final long PAGE_BYTES = sysconf(SC_PAGESIZE);

  private Libc() {}

  private static long sysconf(int name) {
    try {
      long value =
          (long) call("sysconf", JAVA_LONG, JAVA_INT).invokeExact(SCRATCH.get().errno, name);
      if (value <= 0) {
        throw new IllegalStateException("sysconf " + name + " is " + value);
      }
      return value;
    } catch (Throwable e) {
      throw unexpected("sysconf", e);
    }
  }

  @Override
  public long pageBytes() {
    return PAGE_BYTES;
  }

  @Override
  public int open(Path file, int flags, int mode) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment path = arena.allocateFrom(file.toString());
      return intCall("open", s -> (int) OPEN.invokeExact(s.errno, path, flags | O_CLOEXEC, mode));
    }
  }

  @Override
  public int directFlag() {
    // asm-generic's O_DIRECT is 040000; arm64 has its own value.
    return System.getProperty("os.arch").equals("aarch64") ? 0x10000 : 0x4000;
  }

  @Override
  public int close(int fd) {
    return intCall("close", s -> (int) CLOSE.invokeExact(s.errno, fd));
  }

  @Override
  public long pread(int fd, MemorySegment target, long length, long offset) {
    checkLength(target, length);
    return longCall("pread", s -> (long) PREAD.invokeExact(s.errno, fd, target, length, offset));
  }

  @Override
  public long pwrite(int fd, MemorySegment source, long length, long offset) {
    checkLength(source, length);
    return longCall("pwrite", s -> (long) PWRITE.invokeExact(s.errno, fd, source, length, offset));
  }

  @Override
  public int ftruncate(int fd, long length) {
    return intCall("ftruncate", s -> (int) FTRUNCATE.invokeExact(s.errno, fd, length));
  }

  @Override
  public int fallocate(int fd, int mode, long offset, long length) {
    return intCall(
        "fallocate", s -> (int) FALLOCATE.invokeExact(s.errno, fd, mode, offset, length));
  }

  @Override
  public int fsync(int fd) {
    return intCall("fsync", s -> (int) FSYNC.invokeExact(s.errno, fd));
  }

  @Override
  public int rename(Path from, Path to) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocateFrom(from.toString());
      MemorySegment target = arena.allocateFrom(to.toString());
      return intCall("rename", s -> (int) RENAME.invokeExact(s.errno, source, target));
    }
  }

  @Override
  public int mkdir(Path folder, int mode) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment path = arena.allocateFrom(folder.toString());
      return intCall("mkdir", s -> (int) MKDIR.invokeExact(s.errno, path, mode));
    }
  }

  @Override
  public int unlink(Path file) {
    return remove("unlink", UNLINK, file);
  }

  @Override
  public int rmdir(Path folder) {
    return remove("rmdir", RMDIR, folder);
  }

  private static int remove(String function, MethodHandle handle, Path path) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment name = arena.allocateFrom(path.toString());
      return intCall(function, s -> (int) handle.invokeExact(s.errno, name));
    }
  }

  @Override
  public StatResult stat(int fd) {
    MemorySegment s = SCRATCH.get().statx;
    int flags = STATX_BASIC_STATS | STATX_DIOALIGN;
    int status =
        intCall(
            "statx",
            c -> (int) STATX.invokeExact(c.errno, fd, c.emptyPath, AT_EMPTY_PATH, flags, c.statx));
    if (status < 0) {
      // The struct still holds an earlier call's file.
      return StatResult.failed(status);
    }
    // Offsets of struct statx, linux/stat.h: mask 0, mode 28, inode 32, size 40, mtime 112 and 120,
    // dev 136 and 140, dio alignments 152 and 156.
    boolean aligned = (s.get(JAVA_INT, 0) & STATX_DIOALIGN) != 0;
    return new StatResult(
        status,
        s.get(JAVA_LONG, 40),
        (s.get(JAVA_SHORT, 28) & S_IFMT) == S_IFDIR,
        aligned ? s.get(JAVA_INT, 152) : 0,
        aligned ? s.get(JAVA_INT, 156) : 0,
        (long) s.get(JAVA_INT, 136) << 32 | Integer.toUnsignedLong(s.get(JAVA_INT, 140)),
        s.get(JAVA_LONG, 32),
        TimeUnit.SECONDS.toNanos(s.get(JAVA_LONG, 112)) + s.get(JAVA_INT, 120));
  }

  @Override
  public long cachedBytes(int fd, long offset, long length) {
    Scratch scratch = SCRATCH.get();
    scratch.range.setAtIndex(JAVA_LONG, 0, offset);
    scratch.range.setAtIndex(JAVA_LONG, 1, length);
    long result =
        longCall(
            "cachestat",
            s -> (long) CACHESTAT.invokeExact(s.errno, SYS_CACHESTAT, fd, s.range, s.cachestat, 0));
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
      int status = Mincore.call(address, bytes, resident);
      long count = 0;
      for (long page = 0; page < pages; page++) {
        count += resident.get(JAVA_BYTE, page) & 1;
      }
      return status < 0 ? status : count * PAGE_BYTES;
    } finally {
      int _ = munmap(address, bytes);
    }
  }

  /// Linked when it is first called, since few file systems need it.
  private static final class Mincore {
    // int mincore(void *addr, size_t length, unsigned char *vec)
    private static final MethodHandle MINCORE =
        Libc.call("mincore", JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS);

    static int call(long address, long length, MemorySegment resident) {
      return intCall("mincore", s -> (int) MINCORE.invokeExact(s.errno, address, length, resident));
    }
  }

  @Override
  public long mostDescriptors() {
    int status =
        intCall("getrlimit", s -> (int) GETRLIMIT.invokeExact(s.errno, RLIMIT_NOFILE, s.rlimit));
    // The soft limit comes first; as a signed number, none at all is -1.
    long soft = SCRATCH.get().rlimit.get(JAVA_LONG, 0);
    return status < 0 ? status : soft < 0 ? Long.MAX_VALUE : soft;
  }

  @Override
  public long fileSystem(int fd) {
    int status = intCall("fstatfs", s -> (int) FSTATFS.invokeExact(s.errno, fd, s.statfs));
    // f_type comes first.
    return status < 0 ? status : SCRATCH.get().statfs.get(JAVA_LONG, 0);
  }

  @Override
  public long preadNoWait(int fd, MemorySegment target, long length, long offset) {
    checkLength(target, length);
    Scratch scratch = SCRATCH.get();
    scratch.iovec.setAtIndex(JAVA_LONG, 0, target.address());
    scratch.iovec.setAtIndex(JAVA_LONG, 1, length);
    return longCall(
        "preadv2", s -> (long) PREADV2.invokeExact(s.errno, fd, s.iovec, 1, offset, RWF_NOWAIT));
  }

  /// `mmap`: the address, or the negated `errno`.
  public long mmap(long length, int protection, int flags, int fd, long offset) {
    return longCall(
        "mmap", s -> (long) MMAP.invokeExact(s.errno, 0L, length, protection, flags, fd, offset));
  }

  /// `munmap`: 0, or the negated `errno`.
  public int munmap(long address, long length) {
    return intCall("munmap", s -> (int) MUNMAP.invokeExact(s.errno, address, length));
  }

  /// `madvise`: 0, or the negated `errno`.
  public int madvise(long address, long length, int advice) {
    return intCall("madvise", s -> (int) MADVISE.invokeExact(s.errno, address, length, advice));
  }

  /// `posix_fadvise`: 0, or the negated error number, which this call returns itself. A length of 0 is
  /// the rest of the file.
  public int fadvise(int fd, long offset, long length, int advice) {
    return -intCall(
        "posix_fadvise", s -> (int) POSIX_FADVISE.invokeExact(s.errno, fd, offset, length, advice));
  }

  private static void checkLength(MemorySegment segment, long length) {
    if (length < 0 || length > segment.byteSize()) {
      throw new IndexOutOfBoundsException(
          "length " + length + " outside a segment of " + segment.byteSize() + " bytes");
    }
  }

  private static MethodHandle call(String name, ValueLayout result, MemoryLayout... arguments) {
    return LINKER.downcallHandle(
        LINKER.defaultLookup().findOrThrow(name),
        FunctionDescriptor.of(result, arguments),
        Linker.Option.captureCallState("errno"));
  }

  private static MethodHandle variadic(
      String name, int firstVariadic, ValueLayout result, MemoryLayout... arguments) {
    return LINKER.downcallHandle(
        LINKER.defaultLookup().findOrThrow(name),
        FunctionDescriptor.of(result, arguments),
        Linker.Option.firstVariadicArg(firstVariadic),
        Linker.Option.captureCallState("errno"));
  }

  private interface IntCall {
    int invoke(Scratch scratch) throws Throwable;
  }

  private interface LongCall {
    long invoke(Scratch scratch) throws Throwable;
  }

  /// What the function returns, or the negated `errno`.
  private static int intCall(String function, IntCall call) {
    return (int) longCall(function, call::invoke);
  }

  private static long longCall(String function, LongCall call) {
    Scratch scratch = SCRATCH.get();
    try {
      long returned = call.invoke(scratch);
      return returned == -1 ? -scratch.errno.get(JAVA_INT, ERRNO_OFFSET) : returned;
    } catch (Throwable e) {
      throw unexpected(function, e);
    }
  }

  /// `invokeExact` declares any Throwable, but a downcall throws only unchecked exceptions.
  private static RuntimeException unexpected(String function, Throwable e) {
    return switch (e) {
      case RuntimeException runtime -> runtime;
      case Error error -> throw error;
      default -> new IllegalStateException("calling " + function, e);
    };
  }

  /// A thread's own `errno` and argument structs, so that no two calls share them.
  private static final class Scratch {
    private final Arena arena = Arena.ofAuto();
    final MemorySegment errno = arena.allocate(Linker.Option.captureStateLayout());
    final MemorySegment statx = arena.allocate(256, 8);
    final MemorySegment rlimit = arena.allocate(16, 8);
    final MemorySegment statfs = arena.allocate(256, 8);
    final MemorySegment range = arena.allocate(16, 8);
    final MemorySegment cachestat = arena.allocate(40, 8);
    final MemorySegment iovec = arena.allocate(16, 8);
    final MemorySegment emptyPath = arena.allocate(1);
  }
}
