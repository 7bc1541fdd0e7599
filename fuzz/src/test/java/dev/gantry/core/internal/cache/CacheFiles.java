// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalInt;

/// A parser of the two files of an entry in the cache of remote files.
public final class CacheFiles {
  private static final String BLOCKS = "k.blocks";
  private static final String DATA = "k.data";

  private CacheFiles() {}

  /// Reads an entry; the size of the data file counts as the size of the cached file.
  public static void entry(Path folder) throws Exception {
    Path data = folder.resolve(DATA);
    long size = Files.exists(data) ? Files.size(data) : 0;
    FileCalls calls = Libc.INSTANCE;
    try (CacheEntry entry = CacheEntry.open(calls, folder.resolve(BLOCKS), data, size);
        Arena arena = Arena.ofConfined()) {
      if (entry == null) {
        return;
      }
      boolean _ = entry.isSealed();
      for (int block = 0; block < CacheEntry.blocks(size); block++) {
        OptionalInt _ = entry.sum(block);
        MemorySegment bytes = arena.allocate(Math.max(1, entry.bytesOf(block)));
        boolean _ =
            entry.read(
                bytes.asSlice(0, entry.bytesOf(block)), (long) block * CacheEntry.BLOCK_BYTES);
      }
    }
  }

  /// Returns a complete entry, which the cache has made.
  public static Map<String, byte[]> example(Path folder) {
    FileCalls calls = Libc.INSTANCE;
    Path blocks = folder.resolve(BLOCKS);
    Path data = folder.resolve(DATA);
    byte[] content = ByteBuffer.allocate(40).putLong(7).array();
    try {
      Files.deleteIfExists(blocks);
      Files.deleteIfExists(data);
      try (CacheEntry entry = CacheEntry.create(calls, blocks, data, content.length, false);
          Arena arena = Arena.ofConfined()) {
        entry.put(0, arena.allocate(content.length).copyFrom(MemorySegment.ofArray(content)));
        entry.seal();
      }
      return Map.of(BLOCKS, Files.readAllBytes(blocks), DATA, Files.readAllBytes(data));
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
