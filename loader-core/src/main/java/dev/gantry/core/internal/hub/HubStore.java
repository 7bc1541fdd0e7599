// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Files of the Hugging Face hub, as `hf://OWNER/NAME[@REVISION]/FILE`.
///
/// A file that the cache has is a local file. Reads of any other file download the blocks that
/// they want, and write them to the cache; small files are downloaded whole. When all blocks are
/// there, the cache has the file. Thread-safe.
public final class HubStore implements Store {
  /// The size up to which one request downloads a file as a whole.
  private static final long SMALL_BYTES = 4L << 20;

  private final Supplier<HubSettings> found;
  private final long smallBytes;
  private final FileCalls calls;
  private final HttpStore http = new HttpStore();
  private @Nullable HubParts parts;
  private @Nullable Thread atExit;
  private boolean closed;

  /// Makes the store for [java.util.ServiceLoader].
  public HubStore() {
    this(HubSettings::ofProcess, SMALL_BYTES, FileCalls.ofPlatform());
  }

  private HubStore(Supplier<HubSettings> settings, long smallBytes, FileCalls calls) {
    this.found = settings;
    this.smallBytes = smallBytes;
    this.calls = calls;
  }

  /// Makes a store with other variables than the process's, for tests.
  ///
  /// @param smallBytes the size up to which one request downloads a file as a whole
  static HubStore with(Map<String, String> environment, long smallBytes) {
    return with(environment, smallBytes, FileCalls.ofPlatform());
  }

  static HubStore with(Map<String, String> environment, long smallBytes, FileCalls calls) {
    return new HubStore(() -> HubSettings.of(environment::get), smallBytes, calls);
  }

  @Override
  public Set<String> schemes() {
    return Set.of(HubName.SCHEME);
  }

  private synchronized HubParts parts() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
    HubParts present = parts;
    if (present == null) {
      HubSettings settings = found.get();
      HubDisk disk = new HubDisk(calls, settings.links());
      HubCache cache = new HubCache(settings.cache(), disk);
      RemoteCache blocks = new RemoteCache(calls, cache);
      present =
          new HubParts(
              settings,
              calls,
              http,
              new HubClient(settings, http),
              cache,
              disk,
              blocks,
              smallBytes);
      parts = present;
      // The hook lets a program that ends just after a load publish the complete blobs.
      atExit = new Thread(blocks::close, "gantry-hub-exit");
      Runtime.getRuntime().addShutdownHook(atExit);
    }
    return present;
  }

  @Override
  public StoredFile open(Location file, CachePolicy policy) {
    HubName name = HubName.of(file);
    if (name.path().isEmpty()) {
      throw HubErrors.failure("open", name, 404, "this names a repository; name a file in it");
    }
    return new HubOpening(parts(), name, policy).open();
  }

  @Override
  public Optional<List<Location>> list(Location folder) {
    HubName name = HubName.of(folder);
    HubListing listing = HubListing.of(parts(), name);
    String before = name.path().isEmpty() ? "" : name.path() + "/";
    return Optional.of(
        listing.paths().stream()
            .filter(path -> path.startsWith(before) && path.indexOf('/', before.length()) < 0)
            .<Location>map(path -> listing.name().with(path).location())
            .toList());
  }

  @Override
  public boolean keepsFiles() {
    return true;
  }

  @Override
  public Path fetch(Location file) {
    return new HubOpening(parts(), HubName.of(file), CachePolicy.BUFFERED).fetch();
  }

  @Override
  public void close() {
    HubParts used;
    synchronized (this) {
      closed = true;
      used = parts;
      parts = null;
      if (atExit != null) {
        try {
          boolean _ = Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException _) {
          // The process is ending, so the hook closes the cache.
        }
        atExit = null;
      }
    }
    try (http) {
      if (used != null) {
        used.blocks().close();
      }
    }
  }
}
