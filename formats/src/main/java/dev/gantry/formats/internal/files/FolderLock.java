// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.internal.store.RegularFile;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A file lock that lets only one writer of all processes write into a folder, since two writers
/// would remove each other's unfinished work as leftovers of a crash. The kernel releases the
/// lock when the process ends, however it ends. The lock's file may stay; a file alone is no
/// lock.
public final class FolderLock implements AutoCloseable {
  public static final String FILE_NAME = ".gantry.lock";

  private record Key(Object folder, String file) {}

  /// The lock files that this process holds, by the file system's keys. A POSIX lock belongs to the
  /// process: a second writer must not even open the file, since closing it would release the first one's
  /// lock.
  private static final Set<Key> HELD = ConcurrentHashMap.newKeySet();

  private final Key key;
  private final Path file;

  /// The channel that holds the lock; empty before the lock is held.
  private Optional<FileChannel> channel = Optional.empty();

  private FolderLock(Key key, Path file) {
    this.key = key;
    this.file = file;
  }

  /// The lock's file. It may exist although nobody holds the lock.
  public static Path file(Path folder) {
    return folder.resolve(FILE_NAME);
  }

  /// @param writer what errors call a writer of such a folder
  /// @throws MisuseException if another writer holds the lock
  /// @throws TransferException if no file can be made in the folder
  /// @throws dev.gantry.core.MalformedFileException of kind `not-a-regular-file` if a pipe or device has the
  ///     file's name
  public static FolderLock take(Path folder, String writer) {
    return take(folder, FILE_NAME, writer);
  }

  /// Takes a lock as [#take(Path, String)] does, by a file of another name.
  static FolderLock take(Path folder, String name, String writer) {
    Path file = folder.resolve(name);
    try {
      FolderLock made = new FolderLock(new Key(key(folder), name), file);
      if (!HELD.add(made.key)) {
        throw inUse(folder, writer);
      }
      try {
        while (made.channel.isEmpty()) {
          made.channel = lock(file, () -> inUse(folder, writer));
        }
      } finally {
        if (made.channel.isEmpty()) {
          HELD.remove(made.key);
        }
      }
      return made;
    } catch (IOException e) {
      throw FileErrors.of("lock", file.toString(), e);
    }
  }

  /// Locks the file. Returns empty if the last holder of the lock removed the file meanwhile,
  /// since other processes no longer find the locked file then.
  private static Optional<FileChannel> lock(Path file, Supplier<MisuseException> refusal)
      throws IOException {
    makeFile(file);
    boolean locked = false;
    try {
      Object before = key(file);
      FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
      try {
        if (!tryLock(channel)) {
          throw refusal.get();
        }
        locked = key(file).equals(before);
        return locked ? Optional.of(channel) : Optional.empty();
      } finally {
        if (!locked) {
          channel.close();
        }
      }
    } catch (NoSuchFileException e) {
      if (Files.isSymbolicLink(file)) {
        throw e;
      }
      return Optional.empty();
    }
  }

  private static void makeFile(Path file) throws IOException {
    try {
      FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE).close();
    } catch (FileAlreadyExistsException _) {
      // The file was left by a crash, or is held by another writer. A pipe is refused, since the
      // JDK would
      // wait for its other end.
      try {
        RegularFile.requireWritable(file);
      } catch (TransferException e) {
        if (!e.isNotFound()) {
          throw e;
        }
      }
    }
  }

  private static boolean tryLock(FileChannel channel) throws IOException {
    try {
      // The lock is released when the channel closes.
      @Nullable FileLock lock = channel.tryLock();
      return lock != null;
    } catch (OverlappingFileLockException _) {
      // This class, loaded by another class loader of this process, holds the lock.
      return false;
    }
  }

  private static MisuseException inUse(Path folder, String writer) {
    return new MisuseException("another " + writer + " uses " + folder);
  }

  /// Returns a key that is the same for every path to a file or folder.
  private static Object key(Path path) throws IOException {
    Object key = Files.readAttributes(path, BasicFileAttributes.class).fileKey();
    return key == null ? path.toRealPath() : key;
  }

  private boolean isHeld() {
    return channel.isPresent() && channel.get().isOpen();
  }

  /// Releases the lock and removes its file.
  public void remove() {
    if (isHeld()) {
      try {
        if (!Files.isSymbolicLink(file)) {
          Files.deleteIfExists(file);
        }
      } catch (IOException _) {
        // The file stays, as after a crash.
      }
      close();
    }
  }

  /// Releases the lock. Idempotent.
  @Override
  public void close() {
    if (!isHeld()) {
      return;
    }
    try {
      channel.get().close();
    } catch (IOException e) {
      throw FileErrors.of("unlock", file.toString(), e);
    } finally {
      HELD.remove(key);
    }
  }
}
