// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.JdkFiles;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;

/// A file in memory, without a name in any folder, on Linux. It is gone when it is closed.
///
/// @param descriptor the descriptor that keeps the file
public record MemoryFile(int descriptor) implements AutoCloseable {
  /// Whether this process can make such files.
  public static boolean isPossible() {
    return !JdkFiles.areChosen();
  }

  /// Makes a file.
  ///
  /// @throws dev.gantry.core.TransferException if the kernel refuses the file
  public static MemoryFile of(byte[] bytes) {
    String what = bytes.length + " bytes of memory";
    return Cleanup.orUndo(
        () ->
            new MemoryFile(Errno.require(LocalSockets.memoryFile("gantry"), "memfd_create", what)),
        file -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment source = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
            long _ =
                Errno.require(
                    Libc.INSTANCE.pwrite(file.descriptor, source, bytes.length, 0), "pwrite", what);
          }
          return file;
        },
        MemoryFile::close);
  }

  /// The path under which this process opens the file.
  public Path path() {
    return Path.of("/proc/self/fd/" + descriptor);
  }

  @Override
  public void close() {
    int _ = Libc.INSTANCE.close(descriptor);
  }
}
