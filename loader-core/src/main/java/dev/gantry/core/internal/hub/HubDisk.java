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

/// Changes files of the hub's cache: each appears under its name at once or not at all.
///
/// @param links whether files of snapshots may be symbolic links
record HubDisk(FileCalls calls, boolean links) {
  /// The permissions of new files, from which the process's mask takes some.
  private static final int MODE = 0666;

  /// Writes a small file; without it, the hub is asked again, so a folder that is only read serves, too.
  void note(Path file, String text) {
    try {
      Path folder = file.getParent();
      if (folder != null) {
        Path _ = Files.createDirectories(folder);
      }
      Path written = temporary(file);
      write(written, text.getBytes(StandardCharsets.UTF_8));
      Errno.check(calls.rename(written, file), "rename", file);
    } catch (IOException | GantryException _) {
      // See above.
    }
  }

  private void write(Path file, byte[] bytes) {
    int flags = FileCalls.O_WRONLY | FileCalls.O_CREAT | FileCalls.O_EXCL;
    RegularFile made = RegularFile.open(calls, file, flags, MODE, file);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocate(Math.max(1, bytes.length));
      boolean _ =
          made.write(source.copyFrom(MemorySegment.ofArray(bytes)).asSlice(0, bytes.length), 0);
    } finally {
      boolean _ = made.close();
    }
  }

  /// A name beside a file that no other process uses.
  static Path temporary(Path file) {
    String random = UUID.randomUUID().toString().substring(0, 8);
    return file.resolveSibling(file.getFileName() + "." + random + ".incomplete");
  }

  /// Writes a small file, which lasts when this returns.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails, or is full
  void install(Path file, byte[] bytes) {
    Path written = temporary(file);
    try {
      write(written, bytes);
      int descriptor = Errno.require(calls.open(written, FileCalls.O_RDONLY, 0), "open", written);
      try {
        Errno.check(FileCalls.retried(() -> calls.fsync(descriptor)), "fsync", written);
      } finally {
        int _ = calls.close(descriptor);
      }
      Errno.check(calls.rename(written, file), "rename", file);
    } catch (RuntimeException | Error e) {
      int _ = calls.unlink(written);
      throw e;
    }
  }

  /// Publishes a file that is on the disk under a second name, with the permissions of a new file: the first name stays,
  /// unless the file system gives a file only one.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails
  void publish(Path whole, Path file) {
    try {
      Path second = temporary(file);
      write(second, new byte[0]);
      Files.setPosixFilePermissions(whole, Files.getPosixFilePermissions(second));
      Files.delete(second);
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

  /// Makes a snapshot's file of a blob: a symbolic link; else a second name; else the blob itself, moved.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails
  void link(Path blob, Path pointer) {
    Path folder = pointer.getParent();
    if (Files.exists(pointer) || folder == null) {
      return;
    }
    try {
      Path _ = Files.createDirectories(folder);
      boolean _ = Files.deleteIfExists(pointer);
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
