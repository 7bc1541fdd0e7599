// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

public final class PageCache {
  // int mlock(const void *addr, size_t len)
  private static final MethodHandle MLOCK =
      Linker.nativeLinker()
          .downcallHandle(
              Linker.nativeLinker().defaultLookup().findOrThrow("mlock"),
              FunctionDescriptor.of(
                  ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG));

  private PageCache() {}

  /// Brings a part of a file into the page cache and locks it there until the arena is closed,
  /// even where the kernel reclaims the pages of recently written files. Beyond the limit of
  /// locked memory (`ulimit -l`) the pages are only mapped and read, and may be evicted.
  public static void keep(Path file, long offset, long bytes, Arena arena) {
    try (FileChannel channel = FileChannel.open(file)) {
      MemorySegment mapping = channel.map(FileChannel.MapMode.READ_ONLY, offset, bytes, arena);
      mapping.load();
      int _ = (int) MLOCK.invokeExact(mapping, bytes);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("keeping " + file + " in the page cache", e);
    }
  }

  /// Asks the kernel to drop a synchronised file from the page cache.
  ///
  /// @return whether the page cache now has no page of the file; false also if the kernel cannot
  ///     tell
  public static boolean drop(Path file) {
    return dev.gantry.core.internal.store.PageCache.drop(file) == 0;
  }
}
