package dev.gantry.formats.checkpoint;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.FileErrors;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/// The right to save into a folder, for one saver of all processes: two would take each other's
/// unfinished work for a crash's. The kernel takes it back when the process ends, however it ends;
/// the file stays.
final class StoreLock implements AutoCloseable {
  static final String FILE_NAME = ".gantry.lock";

  private final Path file;
  private final FileChannel channel;

  private StoreLock(Path file, FileChannel channel) {
    this.file = file;
    this.channel = channel;
  }

  /// @throws MisuseException if another saver has it
  static StoreLock take(Path folder) {
    Path file = folder.resolve(FILE_NAME);
    try {
      FileChannel channel =
          FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      boolean locked = false;
      try {
        locked = tryLock(channel);
        if (!locked) {
          throw new MisuseException("another saver uses " + folder);
        }
        return new StoreLock(file, channel);
      } finally {
        if (!locked) {
          channel.close();
        }
      }
    } catch (IOException e) {
      throw FileErrors.of("lock", file.toString(), e);
    }
  }

  private static boolean tryLock(FileChannel channel) throws IOException {
    try {
      // Given back when the channel closes.
      @Nullable FileLock lock = channel.tryLock();
      return lock != null;
    } catch (OverlappingFileLockException _) {
      // In this very process.
      return false;
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException e) {
      throw FileErrors.of("unlock", file.toString(), e);
    }
  }
}
