// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.spi.StoredFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One file that is being opened. Not thread-safe.
final class HubOpening {
  private static final Logger LOG = LoggerFactory.getLogger(HubOpening.class);

  /// The size of one read when the whole file is fetched into the cache.
  private static final long PIECE_BYTES = 64L << 20;

  private final HubParts parts;
  private final HubName name;
  private final CachePolicy policy;

  /// The path of the file in the cache, where it may not exist yet.
  private @Nullable Path pointer;

  /// Why the file could not be written to the disk; null if it was written, or no write was tried.
  private @Nullable TransferException refusal;

  HubOpening(HubParts parts, HubName name, CachePolicy policy) {
    this.parts = parts;
    this.name = name;
    this.policy = policy;
  }

  /// Opens the file. If the revision is a commit, or the hub says that the file has not changed, a
  /// cached file is used.
  StoredFile open() {
    Optional<Path> fixed = name.isFixed() ? cached(name) : Optional.empty();
    Optional<HubTree> tree = name.isFixed() ? parts.cache().tree(name) : Optional.empty();
    Optional<HubTree.Entry> entry = tree.flatMap(files -> files.file(name.path()));
    if (fixed.isPresent()) {
      return local(fixed.get(), entry.map(HubTree.Entry::state));
    }
    if ((tree.isPresent() && entry.isEmpty())
        || (name.isFixed() && parts.cache().isMissing(name))) {
      throw HubErrors.failure("open", name, 404, "this commit has no such file");
    }
    if (entry.isPresent() && !parts.settings().offline()) {
      return open(name, entry.get().state());
    }
    Optional<Path> last = parts.cache().commit(name).map(name::at).flatMap(this::cached);
    if (parts.settings().offline()) {
      return local(
          last.orElseThrow(() -> HubErrors.offline("open", name, parts.settings())),
          Optional.empty());
    }
    HubClient client = parts.client();
    HubFile there;
    try {
      there =
          client.look(
              name,
              last.isEmpty(),
              commit -> {
                parts.cache().note(name, commit);
                parts.cache().noteMissing(name.at(commit));
              });
    } catch (TransferException e) {
      if (last.isEmpty() || HubErrors.isFinal(e)) {
        throw e;
      }
      LOG.warn("{}; {} is used", e.getMessage(), last.get());
      return local(last.get(), Optional.empty());
    }
    parts.cache().note(name, there.commit());
    return open(name.at(there.commit()), there.state());
  }

  private Optional<Path> cached(HubName at) {
    return Optional.of(parts.cache().pointer(at)).filter(Files::isRegularFile);
  }

  /// @param known the file's state by the hub's answer, if there was one
  private StoredFile local(Path file, Optional<HubVersion> known) {
    pointer = file;
    // The file must have the identity that it had when its bytes still came from the hub. Where
    // snapshots are no links, only the hub's answer tells the ETag.
    String etag = known.map(HubVersion::etag).orElseGet(() -> etag(file));
    HubVersion.Cached cached = new HubVersion.Cached(parts.calls(), file, policy, etag);
    if (known.isPresent() && known.get().size() != cached.size()) {
      cached.close();
      throw HubErrors.damaged(name, file, cached.size(), known.get().size());
    }
    return cached;
  }

  /// Returns the ETag of a snapshot's file: the name of the blob to which the file is a link.
  private static String etag(Path pointer) {
    try {
      if (Files.isSymbolicLink(pointer)) {
        return Files.readSymbolicLink(pointer).getFileName().toString();
      }
    } catch (IOException _) {
      // Opening the file will report the failure.
    }
    return pointer.toString();
  }

  /// Opens a file of a commit.
  private StoredFile open(HubName at, HubVersion state) {
    Path file = parts.cache().pointer(at);
    Path blob = parts.cache().blob(at, state.etag());
    if (Files.isRegularFile(file)) {
      return local(file, Optional.of(state));
    }
    pointer = file;
    try {
      parts.cache().makeFolders(at, state.etag());
    } catch (TransferException e) {
      refuse(e);
      return bytes(at, state, () -> {});
    }
    boolean small = state.size() <= parts.smallBytes();
    HubLock lock =
        HubLock.take(
            parts.calls(),
            parts.cache().lockFile(at, state.etag()),
            small ? FileCalls.LOCK_EX : FileCalls.LOCK_SH,
            () -> parts.cache().progress(blob),
            () -> Files.exists(blob));
    return Cleanup.orUndo(
        () -> {
          if (Thread.currentThread().isInterrupted()) {
            throw WorkerThreads.interrupted("open", name.toString());
          }
          if (!Files.exists(blob)) {
            if (!small) {
              // This comes before the next check of the blob, so that no process publishes the
              // blob without this link.
              parts.cache().expect(parts.cache().incomplete(at, state.etag()), file);
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
          parts.disk().link(blob, file);
          lock.close();
          return local(file, Optional.of(state));
        },
        lock::close);
  }

  private void refuse(TransferException reason) {
    refusal = reason;
    parts.blocks().refuse(reason);
  }

  /// Copies a small file to the cache.
  ///
  /// @return whether the file was written to the disk
  private boolean copied(HubName at, HubVersion state, Path blob) {
    byte[] bytes = parts.client().bytes(at, state.size());
    if (bytes.length != state.size() || !state.matches(bytes)) {
      throw HubErrors.wrong("GET", at, "the bytes that came are not those of the ETag");
    }
    try {
      parts.disk().install(blob, bytes);
      return true;
    } catch (TransferException e) {
      refuse(e);
      return false;
    }
  }

  private StoredFile coming(HubName at, HubVersion state, HubLock lock) {
    return parts.blocks().open(at.location(), policy, () -> bytes(at, state, lock::close));
  }

  /// @param whenClosed an action to run when the file is closed
  private HubVersion.Coming bytes(HubName at, HubVersion state, Runnable whenClosed) {
    StoredFile bytes =
        parts
            .http()
            .open(at.location(), parts.client().uri(at.resolve()), parts.settings()::headers, true);
    if (bytes.size() != state.size()) {
      bytes.close();
      throw HubErrors.wrong(
          "GET", at, "the file has " + bytes.size() + " bytes instead of " + state.size());
    }
    return new HubVersion.Coming(state, bytes, whenClosed);
  }

  /// Downloads the whole file to the cache.
  ///
  /// @return the path of the file in the cache
  Path fetch() {
    StoredFile opened = open();
    if (opened instanceof HubVersion.Cached || opened instanceof HubVersion.Coming) {
      opened.close();
    } else {
      take(opened);
    }
    return Optional.ofNullable(pointer)
        .filter(Files::isRegularFile)
        .orElseThrow(() ->
            Objects.requireNonNullElseGet(
                refusal,
                () ->
                    HubErrors.failure(
                        "fetch",
                        name,
                        0,
                        "the cache folder "
                            + parts.settings().cache()
                            + " did not take the file; if its disk is the cause, a warning in the"
                            + " log says why")));
  }

  /// Reads the whole file, unless the cache has all of it, and waits until the cache has published
  /// it. If the cache did not take all of it, or the disk fails in the end, nothing publishes it
  /// while another reader has it open, so this does not wait then.
  private void take(StoredFile coming) {
    Path blob;
    CompletableFuture<Void> published;
    boolean comes;
    try (SourceFile source = new SourceFile(name.location(), coming)) {
      String etag = ((HubVersion) source.identity()).etag();
      blob = parts.cache().blob(name, etag);
      published = parts.cache().published(parts.cache().incomplete(name, etag));
      if (!source.isLocal()) {
        read(source, PIECE_BYTES);
      }
      comes = source.isLocal() || source.isWhole();
    }
    if (comes && !Files.exists(blob)) {
      await(published);
    }
    if (pointer != null && Files.exists(blob)) {
      // The cache forgets which links are wanted whenever a reader is the last to close the file.
      parts.disk().link(blob, pointer);
    }
  }

  /// @param most the most bytes of one read
  static void read(SourceFile source, long most) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment buffer = arena.allocate(Math.min(most, source.size()));
      for (long done = 0; done < source.size(); done += buffer.byteSize()) {
        long bytes = Math.min(buffer.byteSize(), source.size() - done);
        boolean _ = source.read(buffer, done, bytes, false);
      }
    }
  }

  private void await(CompletableFuture<Void> published) {
    try {
      var _ = published.get();
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("fetch", name.toString());
    } catch (ExecutionException e) {
      throw new IllegalStateException("nothing fails it", e);
    }
  }
}
