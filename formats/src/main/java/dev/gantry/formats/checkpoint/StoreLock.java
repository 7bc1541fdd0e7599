package dev.gantry.formats.checkpoint;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.FileErrors;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// The right to save into a folder, for one saver of all processes: two would take each other's
/// unfinished work for a crash's. The kernel takes it back when the process ends, however it ends;
/// the file stays.
final class StoreLock implements AutoCloseable {
  static final String FILE_NAME = ".gantry.lock";

  /// The folders of this process's savers, by what the file system knows them by. The kernel's lock
  /// is the process's: a second saver must not even open the file, since closing it would give the
  /// first one's lock back.
  private static final Set<Object> HELD = ConcurrentHashMap.newKeySet();

  private final Object key;
  private final Path file;
  private final FileChannel channel;

  private StoreLock(Object key, Path file, FileChannel channel) {
    this.key = key;
    this.file = file;
    this.channel = channel;
  }

  /// @throws MisuseException if another saver has it
  static StoreLock take(Path folder) {
    Object key = key(folder);
    if (!HELD.add(key)) {
      throw inUse(folder);
    }
    Path file = folder.resolve(FILE_NAME);
    boolean locked = false;
    try {
      FileChannel channel =
          FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      try {
        locked = tryLock(channel);
      } finally {
        if (!locked) {
          channel.close();
        }
      }
      if (!locked) {
        throw inUse(folder);
      }
      return new StoreLock(key, file, channel);
    } catch (IOException e) {
      throw FileErrors.of("lock", file.toString(), e);
    } finally {
      if (!locked) {
        HELD.remove(key);
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

  private static MisuseException inUse(Path folder) {
    return new MisuseException("another saver uses " + folder);
  }

  /// The same for every path to the folder.
  private static Object key(Path folder) {
    try {
      Object key = Files.readAttributes(folder, BasicFileAttributes.class).fileKey();
      return key == null ? folder.toRealPath() : key;
    } catch (IOException e) {
      throw FileErrors.of("stat", folder.toString(), e);
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
