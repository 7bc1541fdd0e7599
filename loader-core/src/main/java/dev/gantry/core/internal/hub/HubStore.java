// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Files of the Hugging Face hub, as `hf://OWNER/NAME[@REVISION]/FILE`.
///
/// A file that the cache has is a local file. Of any other, reads bring the blocks that they want, and write them to the
/// cache; small files come whole. When all blocks are there, the cache has the file. Thread-safe.
public final class HubStore implements Store {
  private static final Logger LOG = LoggerFactory.getLogger(HubStore.class);

  /// Files up to this size come whole by one request.
  private static final long SMALL_BYTES = 4L << 20;

  /// How much of a file is read at once that is fetched for others.
  private static final long PIECE_BYTES = 64L << 20;

  private final Supplier<HubSettings> found;
  private final long smallBytes;
  private final FileCalls calls;
  private final HttpStore http = new HttpStore();
  private @Nullable Parts parts;
  private @Nullable Thread atExit;
  private boolean closed;

  /// What a store needs once it is used.
  private record Parts(
      HubSettings settings, HubClient client, HubCache cache, HubDisk disk, RemoteCache blocks) {}

  /// Is called by [java.util.ServiceLoader].
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
  /// @param smallBytes the size up to which files come whole by one request
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

  private synchronized Parts parts() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
    Parts present = parts;
    if (present == null) {
      HubSettings settings = found.get();
      HubDisk disk = new HubDisk(calls, settings.links());
      HubCache cache = new HubCache(settings.cache(), disk);
      RemoteCache blocks = new RemoteCache(calls, cache);
      present = new Parts(settings, new HubClient(settings, http), cache, disk, blocks);
      parts = present;
      // A program that ends just after a load still publishes what came.
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
    return opening(name, policy).open();
  }

  private Opening opening(HubName name, CachePolicy policy) {
    return new Opening(parts(), name, policy);
  }

  /// One file that is being opened.
  private final class Opening {
    private final HubSettings settings;
    private final HubClient client;
    private final HubCache cache;
    private final HubDisk disk;
    private final RemoteCache blocks;
    private final HubName name;
    private final CachePolicy policy;

    /// The file in the cache; it may not be there yet.
    private @Nullable Path pointer;

    /// Why the disk did not take the file; null if it was not asked, or did.
    private @Nullable TransferException refusal;

    Opening(Parts parts, HubName name, CachePolicy policy) {
      this.settings = parts.settings();
      this.client = parts.client();
      this.cache = parts.cache();
      this.disk = parts.disk();
      this.blocks = parts.blocks();
      this.name = name;
      this.policy = policy;
    }

    /// Opens the file: out of the cache if its commit is fixed, or the hub says that it has not changed.
    StoredFile open() {
      Optional<Path> fixed = name.isFixed() ? cached(name) : Optional.empty();
      Optional<HubTree> tree = name.isFixed() ? cache.tree(name) : Optional.empty();
      Optional<HubTree.Entry> entry = tree.flatMap(files -> files.file(name.path()));
      if (fixed.isPresent()) {
        return local(fixed.get(), entry.map(HubTree.Entry::state));
      }
      if ((tree.isPresent() && entry.isEmpty()) || (name.isFixed() && cache.isMissing(name))) {
        throw HubErrors.failure("open", name, 404, "this commit has no such file");
      }
      if (entry.isPresent() && !settings.offline()) {
        return open(name, entry.get().state());
      }
      Optional<Path> last = cache.commit(name).map(name::at).flatMap(this::cached);
      if (settings.offline()) {
        return local(
            last.orElseThrow(() -> HubErrors.offline("open", name, settings)), Optional.empty());
      }
      HubFile there;
      try {
        there =
            client.look(
                name,
                last.isEmpty(),
                commit -> {
                  cache.note(name, commit);
                  cache.noteMissing(name.at(commit));
                });
      } catch (TransferException e) {
        if (last.isEmpty() || isFinal(e)) {
          throw e;
        }
        LOG.warn("{}; {} is used", e.getMessage(), last.get());
        return local(last.get(), Optional.empty());
      }
      cache.note(name, there.commit());
      return open(name.at(there.commit()), there.state());
    }

    private Optional<Path> cached(HubName at) {
      return Optional.of(cache.pointer(at)).filter(Files::isRegularFile);
    }

    /// @param known what the hub says of the file, if that is known
    private StoredFile local(Path file, Optional<HubVersion> known) {
      pointer = file;
      HubVersion.Cached cached = new HubVersion.Cached(calls, file, policy, etag(file));
      if (known.isPresent() && known.get().size() != cached.size()) {
        cached.close();
        throw HubErrors.damaged(name, file, cached.size(), known.get().size());
      }
      return cached;
    }

    /// The name of the bytes of a snapshot's file: that of the blob to which it is a link.
    private static String etag(Path pointer) {
      try {
        if (Files.isSymbolicLink(pointer)) {
          return Files.readSymbolicLink(pointer).getFileName().toString();
        }
      } catch (IOException _) {
        // The file itself will say what is wrong with it.
      }
      return pointer.toString();
    }

    /// Opens a file of a commit.
    private StoredFile open(HubName at, HubVersion state) {
      Path file = cache.pointer(at);
      Path blob = cache.blob(at, state.etag());
      if (Files.isRegularFile(file)) {
        return local(file, Optional.of(state));
      }
      pointer = file;
      try {
        cache.makeFolders(at, state.etag());
      } catch (TransferException e) {
        refuse(e);
        return bytes(at, state, () -> {});
      }
      boolean small = state.size() <= smallBytes;
      HubLock lock =
          HubLock.take(
              calls,
              cache.lockFile(at, state.etag()),
              small ? FileCalls.LOCK_EX : FileCalls.LOCK_SH,
              () -> cache.progress(blob),
              () -> Files.exists(blob));
      return Cleanup.orUndo(
          () -> {
            if (Thread.currentThread().isInterrupted()) {
              throw HubClient.cancelled("open", name);
            }
            if (!Files.exists(blob)) {
              if (!small) {
                // Before the next look, so that no process publishes the blob without this link.
                cache.expect(cache.incomplete(at, state.etag()), file);
              } else if (!copied(at, state, blob)) {
                return bytes(at, state, lock::close);
              }
            }
            if (!Files.exists(blob)) {
              StoredFile coming = coming(at, state, lock);
              if (coming instanceof FileCache.Filling || !Files.exists(blob)) {
                return coming;
              }
              // Another process has published the blob just now.
              coming.close();
            }
            disk.link(blob, file);
            lock.close();
            return local(file, Optional.of(state));
          },
          lock::close);
    }

    private void refuse(TransferException reason) {
      refusal = reason;
      blocks.refuse(reason);
    }

    /// Copies a small file to the cache.
    ///
    /// @return whether the disk took it
    private boolean copied(HubName at, HubVersion state, Path blob) {
      byte[] bytes = client.bytes(at, state.size());
      if (bytes.length != state.size() || !state.matches(bytes)) {
        throw HubErrors.wrong("GET", at, "the bytes that came are not those of the ETag");
      }
      try {
        disk.install(blob, bytes);
        return true;
      } catch (TransferException e) {
        refuse(e);
        return false;
      }
    }

    private StoredFile coming(HubName at, HubVersion state, HubLock lock) {
      return blocks.open(at.location(), policy, () -> bytes(at, state, lock::close));
    }

    /// @param whenClosed run when the file is closed
    private HubVersion.Coming bytes(HubName at, HubVersion state, Runnable whenClosed) {
      StoredFile bytes =
          http.open(at.location(), client.uri(at.resolve()), settings::headers, true);
      if (bytes.size() != state.size()) {
        bytes.close();
        throw HubErrors.wrong(
            "GET", at, "the file has " + bytes.size() + " bytes instead of " + state.size());
      }
      return new HubVersion.Coming(state, bytes, whenClosed);
    }
  }

  /// Whether a failure says that the hub was reached and has no such revision or file.
  private static boolean isFinal(TransferException e) {
    return e.isNotFound() || e.failure() instanceof Failure.Cancelled;
  }

  /// The files of a commit at which a revision is now.
  private record Listing(HubName name, List<String> paths) {}

  @Override
  public Optional<List<Location>> list(Location folder) {
    Parts parts = parts();
    HubName name = HubName.of(folder);
    Listing listing = listing(parts, name);
    String before = name.path().isEmpty() ? "" : name.path() + "/";
    return Optional.of(
        listing.paths().stream()
            .filter(path -> path.startsWith(before) && path.indexOf('/', before.length()) < 0)
            .<Location>map(path -> listing.name().with(path).location())
            .toList());
  }

  private static Listing listing(Parts parts, HubName name) {
    HubCache cache = parts.cache();
    HubSettings settings = parts.settings();
    Optional<String> last = cache.commit(name);
    String commit;
    if (name.isFixed() || settings.offline()) {
      commit = last.orElseThrow(() -> HubErrors.offline("list", name, settings));
    } else {
      try {
        commit = parts.client().commit(name, last.isEmpty());
        cache.note(name, commit);
      } catch (TransferException e) {
        if (isFinal(e) || last.isEmpty()) {
          throw e;
        }
        LOG.warn("{}; commit {} is used", e.getMessage(), last.get());
        commit = last.get();
      }
    }
    HubName at = name.at(commit);
    Optional<HubTree> known = cache.tree(at);
    if (known.isEmpty() && !settings.offline()) {
      try {
        HubTree tree = parts.client().tree(at);
        cache.keep(at, tree);
        known = Optional.of(tree);
      } catch (TransferException e) {
        if (isFinal(e) || !Files.isDirectory(cache.snapshot(at))) {
          throw e;
        }
        LOG.warn("{}; the files in the cache are listed", e.getMessage());
      }
    }
    return new Listing(
        at,
        known
            .map(tree -> tree.files().stream().map(HubTree.Entry::path).toList())
            .orElseGet(() -> cached(cache.snapshot(at), name, settings)));
  }

  /// The files of a snapshot that are in the cache.
  private static List<String> cached(Path snapshot, HubName name, HubSettings settings) {
    try (Stream<Path> files = Files.walk(snapshot)) {
      return files
          .filter(Files::isRegularFile)
          .map(file -> snapshot.relativize(file).toString())
          .sorted()
          .toList();
    } catch (IOException _) {
      throw HubErrors.offline("list", name, settings);
    }
  }

  @Override
  public boolean keepsFiles() {
    return true;
  }

  @Override
  public Path fetch(Location file) {
    HubName name = HubName.of(file);
    Opening opening = opening(name, CachePolicy.BUFFERED);
    StoredFile opened = opening.open();
    if (!(opened instanceof FileCache.Filling)) {
      opened.close();
    } else {
      fetch(opening.cache, file, opened);
    }
    return Optional.ofNullable(opening.pointer)
        .filter(Files::isRegularFile)
        .orElseThrow(() ->
            Objects.requireNonNullElseGet(
                opening.refusal,
                () ->
                    HubErrors.failure(
                        "fetch",
                        name,
                        0,
                        "the cache folder "
                            + opening.settings.cache()
                            + " did not take the file; a warning in the log says why")));
  }

  /// Reads all of a file, and waits until the cache has it.
  private static void fetch(HubCache cache, Location file, StoredFile coming) {
    CompletableFuture<Void> published;
    try (SourceFile source = new SourceFile(file, coming);
        Arena arena = Arena.ofShared()) {
      HubVersion state = (HubVersion) source.identity();
      published = cache.published(cache.incomplete(HubName.of(file), state.etag()));
      MemorySegment buffer = arena.allocate(Math.min(PIECE_BYTES, source.size()));
      for (long done = 0; done < source.size(); done += buffer.byteSize()) {
        long bytes = Math.min(buffer.byteSize(), source.size() - done);
        boolean _ = source.read(buffer, done, bytes, false);
      }
    }
    try {
      var _ = published.get();
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw HubClient.cancelled("fetch", HubName.of(file));
    } catch (ExecutionException e) {
      throw new IllegalStateException("nothing fails it", e);
    }
  }

  @Override
  public void close() {
    Parts used;
    synchronized (this) {
      closed = true;
      used = parts;
      parts = null;
      if (atExit != null) {
        try {
          boolean _ = Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException _) {
          // The process ends, and closes the cache itself.
        }
        atExit = null;
      }
    }
    Cleanup.runAll(
        used == null ? List.of(http::close) : List.of(used.blocks()::close, http::close));
  }
}
