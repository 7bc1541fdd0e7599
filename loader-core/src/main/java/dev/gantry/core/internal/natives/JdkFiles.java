// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// File calls by the JDK's channels, for macOS and Windows. They have no direct I/O and cannot
/// query the page cache. Descriptors are numbers that this class assigns.
public final class JdkFiles implements FileCalls {
  public static final JdkFiles INSTANCE = new JdkFiles();

  private static final boolean CHOSEN =
      "jdk".equals(System.getProperty("gantry.files"))
          || !System.getProperty("os.name", "").startsWith("Linux");

  /// The flag for direct I/O. As a file system without direct I/O does, `open` refuses it.
  private static final int DIRECT = 1 << 30;

  /// The first descriptor. It is greater than the kernel's descriptors, so that the kernel refuses
  /// a descriptor of this class.
  private static final int FIRST_DESCRIPTOR = 1 << 24;

  /// The text of strerror(3) for `ESTALE`.
  private static final String STALE = "Stale file handle";

  private static final long MAX_BYTES = 1 << 30;
  private static final int MAX_ATTEMPTS = 10;
  private static final int PAGE_BYTES = 4096;
  private static final int MAX_DESCRIPTORS = 1024;

  private final Map<Integer, Handle> handles = new ConcurrentHashMap<>();
  private final AtomicInteger next = new AtomicInteger(FIRST_DESCRIPTOR);

  private JdkFiles() {}

  /// Whether this process uses this class: it does if it does not run on Linux, or if
  /// `-Dgantry.files=jdk` is set.
  public static boolean areChosen() {
    return CHOSEN;
  }

  @FunctionalInterface
  private interface Call {
    long on(FileChannel channel) throws IOException;
  }

  @FunctionalInterface
  private interface Change {
    void run() throws IOException;
  }

  /// An open file. A folder, or another file without bytes, has no channel.
  private static final class Handle {
    private final Set<OpenOption> again;
    private final StatResult opened;
    private volatile Path path;
    private volatile @Nullable FileChannel channel;
    private volatile boolean closed;

    /// @param opened the state of the file when it was opened
    Handle(Path path, @Nullable FileChannel channel, Set<OpenOption> again, StatResult opened) {
      this.path = path;
      this.channel = channel;
      this.again = again;
      this.opened = opened;
    }

    /// Makes a call on the channel. The interruption of any thread closes the channel for all
    /// threads; this call then opens the channel again, if the path still names the same file.
    long call(Call call) {
      boolean interrupted = false;
      try {
        while (true) {
          FileChannel now = channel;
          if (closed || now == null) {
            return -Errno.EBADF.code();
          }
          try {
            return call.on(now);
          } catch (ClosedChannelException _) {
            interrupted |= Thread.interrupted();
            reopen(now);
          }
        }
      } catch (IOException e) {
        return -errno(e);
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }

    private synchronized void reopen(FileChannel dead) throws IOException {
      if (dead.equals(channel) && !closed) {
        Opened now = JdkFiles.open(path, again);
        if (!opened.isSameFile(now.stat)) {
          now.channel.close();
          throw new FileSystemException(path.toString(), null, STALE);
        }
        channel = now.channel;
      }
    }

    /// The file's state. The JDK reads a file's state only by its name: if another file has this
    /// file's name now, only the size is up to date.
    StatResult stat() {
      StatResult now = JdkFiles.stat(path);
      if (channel == null || opened.isSameFile(now)) {
        return now;
      }
      long size = call(FileChannel::size);
      return size < 0 ? StatResult.failed((int) size) : opened.withSize(size);
    }

    synchronized void close() throws IOException {
      closed = true;
      FileChannel now = channel;
      if (now != null) {
        now.close();
      }
    }
  }

  /// @param stat the state of the file that the channel reads
  private record Opened(FileChannel channel, StatResult stat) {}

  private static Opened open(Path file, Set<OpenOption> options) throws IOException {
    StatResult before = stat(file);
    for (int attempt = 1; ; attempt++) {
      FileChannel channel = FileChannel.open(file, options);
      StatResult after = stat(file);
      // If the two results differ, another file took the name meanwhile, or the file system gives
      // new inode numbers at each call.
      if (before.status() < 0 || before.isSameFile(after) || attempt == MAX_ATTEMPTS) {
        return new Opened(channel, after);
      }
      channel.close();
      before = after;
    }
  }

  private static int errno(IOException e) {
    return Errno.of(e).orElse(Errno.EIO).code();
  }

  private static int change(Change change) {
    try {
      change.run();
      return 0;
    } catch (IOException e) {
      return -errno(e);
    }
  }

  private long call(int fd, Call call) {
    Handle handle = handles.get(fd);
    return handle == null ? -Errno.EBADF.code() : handle.call(call);
  }

  @Override
  public int open(Path file, int flags, int mode) {
    if ((flags & DIRECT) != 0) {
      return -Errno.EINVAL.code();
    }
    boolean writes = (flags & (O_WRONLY | O_RDWR)) != 0;
    boolean makes = (flags & O_CREAT) != 0;
    Set<OpenOption> again =
        writes
            ? Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE)
            : Set.of(StandardOpenOption.READ);
    Set<OpenOption> options =
        makes
            ? Set.of(
                StandardOpenOption.READ,
                StandardOpenOption.WRITE,
                (flags & O_EXCL) != 0 ? StandardOpenOption.CREATE_NEW : StandardOpenOption.CREATE)
            : again;
    StatResult there = stat(file);
    if (there.directory() && (writes || makes)) {
      return -((flags & O_EXCL) != 0 ? Errno.EEXIST : Errno.EISDIR).code();
    }
    try {
      Handle handle;
      if (there.status() >= 0 && !there.regular() && (flags & O_EXCL) == 0) {
        // A pipe is not opened, since that would wait for its other end.
        handle = new Handle(file, null, again, there);
      } else {
        Opened opened = open(file, options);
        handle = new Handle(file, opened.channel, again, opened.stat);
      }
      int descriptor = next.getAndIncrement();
      handles.put(descriptor, handle);
      return descriptor;
    } catch (IOException e) {
      return -errno(e);
    }
  }

  @Override
  public int directFlag() {
    return DIRECT;
  }

  @Override
  public String descriptorAbsence() {
    return "the JDK's file channels have no descriptor";
  }

  @Override
  public int close(int fd) {
    Handle handle = handles.remove(fd);
    return handle == null ? -Errno.EBADF.code() : change(handle::close);
  }

  @Override
  public long pread(int fd, MemorySegment target, long length, long offset) {
    return call(fd, channel -> Math.max(0, channel.read(buffer(target, length), offset)));
  }

  @Override
  public long pwrite(int fd, MemorySegment source, long length, long offset) {
    return call(fd, channel -> channel.write(buffer(source, length), offset));
  }

  private static ByteBuffer buffer(MemorySegment memory, long length) {
    return memory.asSlice(0, Math.min(length, MAX_BYTES)).asByteBuffer();
  }

  @Override
  public int ftruncate(int fd, long length) {
    return (int)
        call(
            fd,
            channel -> {
              if (channel.size() < length) {
                int _ = channel.write(ByteBuffer.allocate(1), length - 1);
              } else {
                FileChannel _ = channel.truncate(length);
              }
              return 0;
            });
  }

  @Override
  public int fallocate(int fd, int mode, long offset, long length) {
    return -Errno.EOPNOTSUPP.code();
  }

  @Override
  public long mostDescriptors() {
    return MAX_DESCRIPTORS;
  }

  @Override
  public int fsync(int fd) {
    Handle handle = handles.get(fd);
    if (handle != null && handle.channel == null) {
      syncFolder(handle.path);
      return 0;
    }
    return (int)
        call(
            fd,
            channel -> {
              channel.force(true);
              return 0;
            });
  }

  /// Synchronises a folder on platforms that can. Windows cannot open folders, and does not need
  /// the call.
  private static void syncFolder(Path folder) {
    try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
      channel.force(true);
    } catch (IOException _) {
      // This platform cannot synchronise folders.
    }
  }

  @Override
  public int rename(Path from, Path to) {
    return change(() -> {
      Path _ = Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
      for (Handle handle : handles.values()) {
        if (handle.path.equals(from)) {
          handle.path = to;
        }
      }
    });
  }

  @Override
  public int mkdir(Path folder, int mode) {
    return change(() -> Files.createDirectory(folder));
  }

  @Override
  public int unlink(Path file) {
    return Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)
        ? -Errno.EISDIR.code()
        : change(() -> Files.delete(file));
  }

  @Override
  public int rmdir(Path folder) {
    return Files.exists(folder, LinkOption.NOFOLLOW_LINKS)
            && !Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
        ? -Errno.ENOTDIR.code()
        : change(() -> Files.delete(folder));
  }

  @Override
  public StatResult stat(int fd) {
    Handle handle = handles.get(fd);
    return handle == null ? StatResult.failed(-Errno.EBADF.code()) : handle.stat();
  }

  /// Returns the state of the file that has this name now, without opening the file. On Linux the
  /// state equals the result of [Libc] for the open file.
  public static StatResult stat(Path file) {
    try {
      boolean unix = file.getFileSystem().supportedFileAttributeViews().contains("unix");
      return unix ? unix(file) : basic(file);
    } catch (IOException e) {
      return StatResult.failed(-errno(e));
    }
  }

  private static StatResult unix(Path file) throws IOException {
    Map<String, Object> found =
        Files.readAttributes(file, "unix:dev,ino,size,lastModifiedTime,mode,uid");
    FileTime modified = (FileTime) Objects.requireNonNull(found.get("lastModifiedTime"));
    return new StatResult(
        0,
        number(found, "size"),
        (Integer) Objects.requireNonNull(found.get("mode")),
        (Integer) Objects.requireNonNull(found.get("uid")),
        0,
        0,
        device(number(found, "dev")),
        number(found, "ino"),
        modified.to(TimeUnit.NANOSECONDS));
  }

  private static StatResult basic(Path file) throws IOException {
    BasicFileAttributes found = Files.readAttributes(file, BasicFileAttributes.class);
    long modified = found.lastModifiedTime().to(TimeUnit.NANOSECONDS);
    int mode =
        found.isDirectory() ? StatResult.S_IFDIR : found.isRegularFile() ? StatResult.S_IFREG : 0;
    return new StatResult(0, found.size(), mode, -1, 0, 0, 0, 0, modified);
  }

  private static long number(Map<String, Object> attributes, String name) {
    return (Long) Objects.requireNonNull(attributes.get(name));
  }

  /// Decodes a `dev_t`, as glibc's `gnu_dev_major` and `gnu_dev_minor` do.
  private static long device(long encoded) {
    long major = (encoded >>> 8 & 0xfffL) | (encoded >>> 32 & 0xfffff000L);
    long minor = (encoded & 0xffL) | (encoded >>> 12 & 0xffffff00L);
    return major << Integer.SIZE | minor;
  }

  @Override
  public long pageBytes() {
    return PAGE_BYTES;
  }

  @Override
  public long cachedBytes(int fd, long offset, long length) {
    return -Errno.ENOSYS.code();
  }

  @Override
  public long mappedBytes(int fd, long offset, long length) {
    return -Errno.ENOSYS.code();
  }

  @Override
  public long fileSystem(int fd) {
    return -Errno.ENOSYS.code();
  }

  @Override
  public long preadNoWait(int fd, MemorySegment target, long length, long offset) {
    return -Errno.ENOSYS.code();
  }
}
