// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.spi.ReadRequest;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.core.spi.WritableStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// A store of files in memory, named `memory://folder/name`. Reads end on threads of their own, in
/// any order. All instances share the same files.
public final class MemoryStore implements WritableStore {
  private static final Map<String, byte[]> FILES = new ConcurrentHashMap<>();

  private static volatile @Nullable Consumer<String> beforeWrite;

  private static volatile @Nullable Consumer<String> beforeOpen;

  /// Makes a file, or replaces the file of the name.
  public static Location put(String name, byte[] bytes) {
    Location file = Location.of("memory://" + name);
    FILES.put(file.toString(), bytes.clone());
    return file;
  }

  /// Returns the names of all files below a folder.
  public static List<String> names(String folder) {
    String start = "memory://" + folder + "/";
    return FILES.keySet().stream()
        .filter(file -> file.startsWith(start))
        .map(file -> file.substring(start.length()))
        .sorted()
        .toList();
  }

  /// Sets an action that each write runs first, and that may throw; null for none.
  public static void beforeEachWrite(@Nullable Consumer<String> action) {
    beforeWrite = action;
  }

  /// Sets an action that each opening of a file runs first, with the file's name; null for none.
  public static void beforeEachOpen(@Nullable Consumer<String> action) {
    beforeOpen = action;
  }

  private static void beforeWrite(String call, Location file) {
    Consumer<String> action = beforeWrite;
    if (action != null) {
      action.accept(call + " " + file.fileName());
    }
  }

  @Override
  public List<Entry> below(Location folder) {
    String start = folder.toString().endsWith("/") ? folder.toString() : folder + "/";
    return FILES.entrySet().stream()
        .filter(file -> file.getKey().startsWith(start))
        .map(file -> new Entry(file.getKey().substring(start.length()), file.getValue().length))
        .sorted(Comparator.comparing(Entry::name))
        .toList();
  }

  @Override
  public void upload(Path file, Location target) {
    beforeWrite("upload", target);
    try {
      FILES.put(target.toString(), Files.readAllBytes(file));
    } catch (IOException e) {
      throw FileErrors.of("read", file.toString(), e);
    }
  }

  @Override
  public void remove(Location file) {
    beforeWrite("remove", file);
    FILES.remove(file.toString());
  }

  /// Does nothing: an upload to memory is never incomplete.
  @Override
  public void endUploads(Location folder, Predicate<String> names) {}

  @Override
  public Set<String> schemes() {
    return Set.of("memory");
  }

  @Override
  public StoredFile open(Location file, CachePolicy policy) {
    Consumer<String> action = beforeOpen;
    if (action != null) {
      action.accept(file.fileName());
    }
    byte[] bytes = FILES.get(file.toString());
    if (bytes == null) {
      throw new TransferException("open", file.toString(), new Failure.Remote(404, "no such file"));
    }
    return new MemoryFile(bytes);
  }

  /// A file that keeps its bytes when another file replaces it.
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
