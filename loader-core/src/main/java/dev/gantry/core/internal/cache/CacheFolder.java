// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.JdkFiles;
import dev.gantry.core.internal.natives.ipc.OwnFiles;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The folder of a cache: knows which files are in the folder, and bounds their total size.
///
/// Disk space for the whole file is allocated, and its whole size counts, before its first block
/// is written. Therefore every file can become whole, and the bound always holds. When a new file
/// exceeds the bound, the least recently used files are removed, except files that a process uses.
///
/// Processes lock the file `lock` while they make a file or remove files for it. The file `lock`
/// also holds the total size of all cached files. This total may be too high after a crash; the
/// next process that removes files counts them anew. Thread-safe.
final class CacheFolder implements EntryFolder {
  private static final Pattern NAME = Pattern.compile("([0-9a-f]{64})\\.(blocks|data)");
  private static final FileTime NEVER = FileTime.fromMillis(0);
  private static final long LOCK_PAUSE_NANOS = 1_000_000;

  /// How long to wait for another process's lock, which is the same as for a block that another
  /// process fetches. The wait is bounded, since a stopped process keeps its locks.
  private static final long PATIENCE_NANOS = 5_000_000_000L;

  private final FileCalls calls;
  private final Path folder;
  private final long mostBytes;

  /// @throws TransferException if the folder cannot be made
  /// @throws MisuseException if the folder belongs to another user, or others may write to it
  CacheFolder(FileCalls calls, Path folder, long mostBytes) {
    this.calls = calls;
    this.folder = folder;
    this.mostBytes = mostBytes;
    Folders.makePrivate(folder);
    OwnFiles.require(calls, folder, JdkFiles.stat(folder));
  }

  private Path blocks(String key) {
    return folder.resolve(key + ".blocks");
  }

  private Path data(String key) {
    return folder.resolve(key + ".data");
  }

  /// The key is a hash, since a URI may contain a secret.
  @Override
  public String key(WholeFile.Version version) {
    try {
      String name = version.file().uri() + "\n" + version.text();
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      return HexFormat.of().formatHex(digest.digest(name.getBytes(StandardCharsets.UTF_8)));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  /// Also sets the time of the file's last use to now.
  @Override
  public @Nullable CacheEntry find(String key, long size) {
    return Cleanup.orUndo(
        () -> CacheEntry.open(calls, blocks(key), data(key), size),
        found -> {
          if (found != null) {
            touch(key);
          }
          return found;
        },
        CacheEntry::closeIfThere);
  }

  /// Null also if the new file and the files in use would exceed the bound.
  @Override
  public @Nullable CacheEntry open(String key, long size) {
    CacheEntry present = find(key, size);
    return present == null ? locked(calls, lockFile(), lock -> create(lock, key, size)) : present;
  }

  private @Nullable CacheEntry create(int lock, String key, long size) {
    CacheEntry present = find(key, size);
    if (present != null) {
      return present;
    }
    long cost = CacheEntry.cost(size);
    if (cost > mostBytes || !CacheEntry.remove(calls, blocks(key), data(key))) {
      return null;
    }
    long sum = readSum(lock);
    if (sum < 0 || sum + cost > mostBytes) {
      sum = makeRoom(mostBytes - cost);
    }
    if (sum + cost > mostBytes) {
      writeSum(lock, sum);
      return null;
    }
    writeSum(lock, sum + cost);
    return CacheEntry.create(calls, blocks(key), data(key), size, true);
  }

  /// Sets the time of a file's last use to now.
  private void touch(String key) {
    try {
      Files.setLastModifiedTime(blocks(key), FileTime.from(Instant.now()));
    } catch (IOException _) {
      // Without the time, the file is removed earlier than it should be, which loses nothing.
    }
  }

  /// Sets the time of a file's last use to now. If the disk failed, removes the file instead,
  /// unless another process uses it.
  @Override
  public void closed(String key, boolean failed) {
    if (failed) {
      boolean _ = CacheEntry.remove(calls, blocks(key), data(key));
    } else {
      touch(key);
    }
  }

  private record Found(String key, FileTime used, long bytes) {
    Found plus(Found other) {
      return new Found(key, used.equals(NEVER) ? other.used : used, bytes + other.bytes);
    }
  }

  /// Counts the files that are in the folder now.
  ///
  /// @throws TransferException if the folder cannot be listed
  RemoteCache.Use use() {
    List<Found> found = list();
    return new RemoteCache.Use(
        folder, found.size(), found.stream().mapToLong(Found::bytes).sum(), mostBytes);
  }

  private List<Found> list() {
    Map<String, Found> found = new HashMap<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Matcher name = NAME.matcher(file.getFileName().toString());
        if (name.matches()) {
          try {
            // A crash may leave a data file without its checksums; such a file counts as never
            // used and is removed first.
            FileTime used =
                name.group(2).equals("blocks") ? Files.getLastModifiedTime(file) : NEVER;
            Found one = new Found(name.group(1), used, Files.size(file));
            found.merge(one.key(), one, Found::plus);
          } catch (NoSuchFileException _) {
            // Another process has removed the file meanwhile.
          }
        }
      }
    } catch (IOException e) {
      throw FileErrors.of("list", folder.toString(), e);
    }
    return found.values().stream().sorted(Comparator.comparing(Found::used)).toList();
  }

  /// Removes the least recently used files until at most `most` bytes are left, or only files in
  /// use are left.
  ///
  /// @return the bytes that are left
  private long makeRoom(long most) {
    List<Found> found = list();
    long sum = found.stream().mapToLong(Found::bytes).sum();
    for (Found file : found) {
      if (sum <= most) {
        break;
      }
      if (CacheEntry.remove(calls, blocks(file.key), data(file.key))) {
        sum -= file.bytes;
      }
    }
    return sum;
  }

  private Path lockFile() {
    return folder.resolve("lock");
  }

  /// Does `work` while this process holds an exclusive lock on a file.
  ///
  /// @throws TransferException if another process holds the lock for some seconds, or this thread
  ///     is interrupted
  /// @param work receives the descriptor of the lock's file
  static <T extends @Nullable Object> T locked(
      FileCalls calls, Path lockFile, IntFunction<T> work) {
    int flags = FileCalls.O_RDWR | FileCalls.O_CREAT;
    int file = Errno.require(OwnFiles.open(calls, lockFile, flags), "open", lockFile);
    try {
      for (long begun = System.nanoTime(); ; ) {
        int result = calls.lock(file, FileCalls.F_WRLCK, 0, 1);
        if (result >= 0) {
          return work.apply(file);
        }
        if (result != -Errno.EAGAIN.code() || System.nanoTime() - begun > PATIENCE_NANOS) {
          Errno.check(result, "fcntl", lockFile);
        }
        if (Thread.currentThread().isInterrupted()) {
          throw WorkerThreads.interrupted("fcntl", lockFile.toString());
        }
        LockSupport.parkNanos(LOCK_PAUSE_NANOS);
      }
    } finally {
      int _ = calls.close(file);
    }
  }

  /// @return the total size of all files in bytes, or -1 if it is not known
  private long readSum(int file) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment sum = arena.allocate(ValueLayout.JAVA_LONG);
      long count = calls.pread(file, sum, Long.BYTES, 0);
      return count == Long.BYTES ? sum.get(ValueLayout.JAVA_LONG, 0) : -1;
    }
  }

  private void writeSum(int file, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment sum = arena.allocate(ValueLayout.JAVA_LONG);
      sum.set(ValueLayout.JAVA_LONG, 0, bytes);
      long _ = Errno.require(calls.pwrite(file, sum, Long.BYTES, 0), "pwrite", lockFile());
    }
  }
}
