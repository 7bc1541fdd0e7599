// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.GantryException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.internal.store.RegularFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/// Changes files of the hub's cache. Each file appears under its name with all its bytes, or not
/// at all.
///
/// @param links whether files of snapshots may be symbolic links
record HubDisk(FileCalls calls, boolean links) {
  /// The permissions of new files before the process's umask is applied.
  private static final int MODE = 0666;

  /// Writes a small file if the folder can be written. If it cannot, nothing fails: the hub is
  /// asked again next time.
  void note(Path file, String text) {
    try {
      Path folder = file.getParent();
      if (folder != null) {
        Path _ = Files.createDirectories(folder);
      }
      put(file, text.getBytes(StandardCharsets.UTF_8), false);
    } catch (IOException | GantryException _) {
      // The folder cannot be written.
    }
  }

  private void write(Path file, byte[] bytes, boolean durable) {
    int flags = FileCalls.O_WRONLY | FileCalls.O_CREAT | FileCalls.O_EXCL;
    RegularFile made = RegularFile.open(calls, file, flags, MODE, file);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocate(Math.max(1, bytes.length));
      boolean _ =
          made.write(source.copyFrom(MemorySegment.ofArray(bytes)).asSlice(0, bytes.length), 0);
      if (durable) {
        made.sync();
      }
    } finally {
      boolean _ = made.close();
    }
  }

  /// Returns the path of a temporary file beside `file` that no other process uses.
  static Path temporary(Path file) {
    String random = UUID.randomUUID().toString().substring(0, 8);
    return file.resolveSibling(file.getFileName() + "." + random + ".incomplete");
  }

  /// Writes a small file, which is durable when this call returns.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails, or is full
  void install(Path file, byte[] bytes) {
    put(file, bytes, true);
  }

  /// Writes a file under a temporary name, which a failure removes.
  private void put(Path file, byte[] bytes, boolean durable) {
    Path written = temporary(file);
    try {
      write(written, bytes, durable);
      Errno.check(calls.rename(written, file), "rename", file);
    } catch (RuntimeException | Error e) {
      int _ = calls.unlink(written);
      throw e;
    }
  }

  /// Publishes a durable file under a second name, with the permissions of a new file. The first
  /// name stays, unless the file system has no hard links.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails
  void publish(Path whole, Path file) {
    try {
      Path second = temporary(file);
      write(second, new byte[0], false);
      try {
        Files.setPosixFilePermissions(whole, Files.getPosixFilePermissions(second));
      } finally {
        Files.delete(second);
      }
      if (!linked(whole, file)) {
        Errno.check(calls.rename(whole, file), "rename", file);
      }
    } catch (IOException e) {
      throw FileErrors.of("link", file.toString(), e);
    }
  }

  private static boolean linked(Path file, Path second) {
    try {
      Path _ = Files.createLink(second, file);
      return true;
    } catch (FileAlreadyExistsException _) {
      return true;
    } catch (UnsupportedOperationException | IOException _) {
      return false;
    }
  }

  /// Makes a snapshot's file from a blob: a symbolic link if the file system has them, else a hard
  /// link, else the blob itself, which is moved.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails
  void link(Path blob, Path pointer) {
    Path folder = pointer.getParent();
    if (Files.exists(pointer) || folder == null) {
      return;
    }
    try {
      Path _ = Files.createDirectories(folder);
      if (Files.isSymbolicLink(pointer) && !Files.exists(pointer)) {
        // Its blob is gone. A link that another thread has made just now is left alone.
        boolean _ = Files.deleteIfExists(pointer);
      }
      if (!(links && symbolic(folder.relativize(blob), pointer)) && !linked(blob, pointer)) {
        Errno.check(calls.rename(blob, pointer), "rename", pointer);
      }
    } catch (IOException e) {
      throw FileErrors.of("link", pointer.toString(), e);
    }
  }

  private static boolean symbolic(Path target, Path link) {
    try {
      Path _ = Files.createSymbolicLink(link, target);
      return true;
    } catch (FileAlreadyExistsException _) {
      return true;
    } catch (UnsupportedOperationException | IOException _) {
      return false;
    }
  }
}
