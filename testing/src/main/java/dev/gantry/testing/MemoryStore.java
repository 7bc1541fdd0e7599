// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Files in memory, for tests: `memory://folder/name`. Reads end on threads of their own, in any
/// order. All instances have the same files.
public final class MemoryStore implements Store {
  private static final Map<String, byte[]> FILES = new ConcurrentHashMap<>();

  /// Makes a file, or puts another in its place.
  public static Location put(String name, byte[] bytes) {
    Location file = Location.of("memory://" + name);
    FILES.put(file.toString(), bytes.clone());
    return file;
  }

  @Override
  public Set<String> schemes() {
    return Set.of("memory");
  }

  @Override
  public StoredFile open(Location file, CachePolicy policy) {
    byte[] bytes = FILES.get(file.toString());
    if (bytes == null) {
      throw new TransferException("open", file.toString(), new Failure.Remote(404, "no such file"));
    }
    return new MemoryFile(bytes);
  }

  /// Keeps its bytes when another file takes its place.
  private static final class MemoryFile implements StoredFile {
    private final byte[] bytes;

    MemoryFile(byte[] bytes) {
      this.bytes = bytes;
    }

    @Override
    public long size() {
      return bytes.length;
    }

    @Override
    public Object identity() {
      return bytes;
    }

    @Override
    public int requestsAtOnce() {
      return 100;
    }

    @Override
    public void read(ReadRequest request) {
      Thread _ =
          Thread.ofVirtual()
              .start(() -> {
                MemorySegment target = request.target();
                MemorySegment.copy(
                    MemorySegment.ofArray(bytes), request.offset(), target, 0, target.byteSize());
                request.completed();
              });
    }

    @Override
    public void close() {}
  }
}
