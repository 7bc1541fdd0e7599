// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.internal.natives.FileCalls;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// The entries of files that a [BlobPlace] publishes for other programs when they are whole. Their
/// total size has no bound. The files are sparse: they take disk space only for the blocks that
/// were fetched, since often only a header is read.
record BlobFolder(FileCalls calls, BlobPlace place) implements EntryFolder {
  @Override
  public String key(WholeFile.Version version) {
    return place.incomplete(version.file(), version.text()).toString();
  }

  private static Path blocks(Path data) {
    return data.resolveSibling(data.getFileName() + ".blocks");
  }

  @Override
  public @Nullable CacheEntry find(String key, long size) {
    Path data = Path.of(key);
    return CacheEntry.open(calls, blocks(data), data, size);
  }

  @Override
  public @Nullable CacheEntry open(String key, long size) {
    CacheEntry present = find(key, size);
    return present == null
        ? CacheFolder.locked(calls, place.lock(Path.of(key)), _ -> create(key, size))
        : present;
  }

  private @Nullable CacheEntry create(String key, long size) {
    CacheEntry present = find(key, size);
    if (present != null) {
      return present;
    }
    Path data = Path.of(key);
    return !place.isPublished(data) && CacheEntry.remove(calls, blocks(data), data)
        ? CacheEntry.create(calls, blocks(data), data, size, false)
        : null;
  }

  @Override
  public void sealed(String key) {
    place.whole(Path.of(key));
  }

  @Override
  public void failed(String key) {
    place.failed(Path.of(key));
  }

  @Override
  public void closed(String key, boolean failed) {
    Path data = Path.of(key);
    place.closed(data);
    if (failed || place.isPublished(data)) {
      boolean _ = CacheEntry.remove(calls, blocks(data), data);
    }
  }
}
