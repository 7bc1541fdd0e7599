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

/// The right to write into a folder, for one writer of all processes: two would take each other's
/// unfinished work for a crash's. The kernel takes it back when the process ends, however it ends;
/// the file may stay, and says nothing.
public final class FolderLock implements AutoCloseable {
  public static final String FILE_NAME = ".gantry.lock";

  private record Key(Object folder, String file) {}

  /// The folders of this process's writers, by what the file system knows them by. The kernel's
  /// lock is the process's: a second writer must not even open the file, since closing it would
  /// give the first one's lock back.
  private static final Set<Key> HELD = ConcurrentHashMap.newKeySet();

  private final Key key;
  private final Path file;
  private final FileChannel channel;

  private FolderLock(Key key, Path file, FileChannel channel) {
    this.key = key;
    this.file = file;
    this.channel = channel;
  }

  /// The file that says nothing by itself.
  public static Path file(Path folder) {
    return folder.resolve(FILE_NAME);
  }

  /// @param writer what writers of such folders are called, for errors
  /// @throws MisuseException if another has it
  /// @throws TransferException if the folder takes no file
  /// @throws dev.gantry.core.MalformedFileException of kind `not-a-regular-file` if a pipe or device has the
  ///     file's name
  public static FolderLock take(Path folder, String writer) {
    return take(folder, FILE_NAME, writer);
  }

  /// As [#take(Path, String)], by a file of another name.
  static FolderLock take(Path folder, String name, String writer) {
    Path file = folder.resolve(name);
    try {
      Key key = new Key(key(folder), name);
      if (!HELD.add(key)) {
        throw inUse(folder, writer);
      }
      Optional<FileChannel> channel = Optional.empty();
      try {
        while (channel.isEmpty()) {
          channel = lock(file, () -> inUse(folder, writer));
        }
      } finally {
        if (channel.isEmpty()) {
          HELD.remove(key);
        }
      }
      return new FolderLock(key, file, channel.get());
    } catch (IOException e) {
      throw FileErrors.of("lock", file.toString(), e);
    }
  }

  /// Empty where the file was removed meanwhile, as its last holder may do: what is locked then is
  /// no longer what others find.
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
      // Left by a crash, or held; or a pipe, for whose other end the JDK would wait.
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
      // Given back when the channel closes.
      @Nullable FileLock lock = channel.tryLock();
      return lock != null;
    } catch (OverlappingFileLockException _) {
      // In this very process, by classes of another loader.
      return false;
    }
  }

  private static MisuseException inUse(Path folder, String writer) {
    return new MisuseException("another " + writer + " uses " + folder);
  }

  /// The same for every path to a file or folder.
  private static Object key(Path path) throws IOException {
    Object key = Files.readAttributes(path, BasicFileAttributes.class).fileKey();
    return key == null ? path.toRealPath() : key;
  }

  /// Gives the right back, and leaves no trace of it.
  public void remove() {
    if (channel.isOpen()) {
      try {
        if (!Files.isSymbolicLink(file)) {
          Files.deleteIfExists(file);
        }
      } catch (IOException _) {
        // It stays, as it does after a crash.
      }
      close();
    }
  }

  /// Gives the right back; a second time does nothing.
  @Override
  public void close() {
    if (!channel.isOpen()) {
      return;
    }
    try {
      channel.close();
    } catch (IOException e) {
      throw FileErrors.of("unlock", file.toString(), e);
    } finally {
      HELD.remove(key);
    }
  }
}
