package dev.gantry.formats.internal.files;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;

/// A regular file, open for reading its metadata. Errors come in Gantry's families, never as
/// [IOException].
public final class FileBytes implements AutoCloseable {
  private final Location file;
  private final FileChannel channel;
  private final long length;

  private FileBytes(Location file, FileChannel channel, long length) {
    this.file = file;
    this.channel = channel;
    this.length = length;
  }

  /// Opens a local file.
  ///
  /// @throws TransferException as [#open(Location)]
  /// @throws MalformedFileException as [#open(Location)]
  public static FileBytes open(Path file) {
    return open(Location.of(file));
  }

  /// @throws TransferException if the file cannot be opened, or is a directory
  /// @throws MalformedFileException of kind `not-a-regular-file` for a pipe, a socket or a device:
  ///     opening one may block for ever
  public static FileBytes open(Location file) {
    Path path = file.path();
    requireRegular(path);
    try {
      FileChannel channel = FileChannel.open(path, StandardOpenOption.READ);
      try {
        return new FileBytes(file, channel, channel.size());
      } catch (IOException e) {
        channel.close();
        throw e;
      }
    } catch (IOException e) {
      throw FileErrors.of("open", file.toString(), e);
    }
  }

  /// Looks at a file before it is opened.
  ///
  /// @throws TransferException if the file is not there, or is a directory
  /// @throws MalformedFileException of kind `not-a-regular-file`
  public static void requireRegular(Path file) {
    BasicFileAttributes attributes;
    try {
      attributes = Files.readAttributes(file, BasicFileAttributes.class);
    } catch (IOException e) {
      throw FileErrors.of("open", file.toString(), e);
    }
    if (attributes.isDirectory()) {
      throw FileErrors.isDirectory("open", file.toString());
    }
    if (!attributes.isRegularFile()) {
      throw new MalformedFileException(file, 0, "not-a-regular-file", "a pipe, socket or device");
    }
  }

  public Location file() {
    return file;
  }

  /// The file's length in bytes when it was opened.
  public long length() {
    return length;
  }

  /// Fills `target` from `offset` on.
  ///
  /// @throws TransferException if a read fails, or the file has become too short meanwhile
  public void readFully(ByteBuffer target, long offset) {
    long at = offset;
    while (target.hasRemaining()) {
      int count = read(target, at);
      if (count < 0) {
        throw new TransferException(
            "read", subject(at, target), new Failure.EndOfFile(target.remaining()));
      }
      at += count;
    }
  }

  private int read(ByteBuffer target, long offset) {
    try {
      return channel.read(target, offset);
    } catch (IOException e) {
      throw FileErrors.of("read", subject(offset, target), e);
    }
  }

  private String subject(long offset, ByteBuffer target) {
    return file + ", offset " + offset + ", length " + target.remaining();
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException e) {
      throw FileErrors.of("close", file.toString(), e);
    }
  }
}
