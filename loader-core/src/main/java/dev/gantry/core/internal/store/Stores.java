// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import dev.gantry.core.spi.WritableStore;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// A session's stores: the local store, and the stores that [Services] finds when the first remote
/// file is opened. Thread-safe.
public final class Stores implements AutoCloseable {
  /// How many links' windows are remembered.
  private static final int MAX_LINKS = 1000;

  private final LocalStore local;
  private final List<Store> remote = new ArrayList<>();
  private final List<FileCache> caches = new ArrayList<>();

  /// The measured window of the link to each server, by scheme and authority.
  private final Map<String, LinkWindow> links = new ConcurrentHashMap<>();

  private volatile @Nullable FileCache cache;
  private boolean found;

  public Stores(FileCalls calls) {
    this(calls, List.of());
  }

  /// @param given stores that are asked before the registered ones; [#close] closes them
  public Stores(FileCalls calls, List<Store> given) {
    local = new LocalStore(calls);
    remote.addAll(given);
  }

  /// @throws TransferException if the file cannot be opened, is a directory, or is of another version
  ///     than the location asks for
  /// @throws MalformedFileException of kind `changed-meanwhile` if a local file is of another version
  /// @throws MisuseException if no store serves the location's scheme
  public SourceFile open(Location file, CachePolicy policy) {
    return Cleanup.orUndo(
        () ->
            switch (file) {
              case Location.Local _ -> local.open(file, policy);
              case Location.Remote named -> openRemote(named, policy);
            },
        opened -> {
          requireVersion(file, opened);
          return new SourceFile(file, opened, link(file));
        },
        StoredFile::close);
  }

  /// Does the same as [#open(Location, CachePolicy)]. If `cancellation` is cancelled while a
  /// remote file is being opened, the store is interrupted.
  ///
  /// @throws TransferException also if the opening was cancelled
  public SourceFile open(Location file, CachePolicy policy, Cancellation cancellation) {
    if (file instanceof Location.Local) {
      return open(file, policy);
    }
    if (cancellation.isCancelled()) {
      throw cancelled(file, null);
    }
    try (Interruption _ = new Interruption(cancellation)) {
      return open(file, policy);
    } catch (RuntimeException e) {
      // A client that is interrupted may throw an exception of its own.
      throw cancellation.isCancelled() ? cancelled(file, e) : e;
    }
  }

  private static TransferException cancelled(Location file, @Nullable Throwable cause) {
    return new TransferException("open", file.toString(), new Failure.Cancelled(), cause);
  }

  /// Lists the files in a folder of a remote store, as [Store#list] does.
  public Optional<List<Location>> list(Location.Remote folder) {
    return serving(folder).list(folder);
  }

  /// Whether a file's store keeps copies on this machine, as [Store#keepsFiles] says.
  public boolean keeps(Location.Remote file) {
    return serving(file).keepsFiles();
  }

  /// Copies a remote file to a disk of this machine, as [Store#fetch] does.
  public Path fetch(Location.Remote file) {
    return serving(file).fetch(file);
  }

  private LinkWindow link(Location file) {
    if (!(file instanceof Location.Remote remote) || links.size() > MAX_LINKS) {
      return new LinkWindow();
    }
    return links.computeIfAbsent(
        remote.scheme() + "://" + remote.uri().getRawAuthority(), _ -> new LinkWindow());
  }

  private StoredFile openRemote(Location.Remote file, CachePolicy policy) {
    Store store = serving(file);
    FileCache present = cache;
    return present == null
        ? open(store, file, policy)
        : present.open(file, policy, () -> open(store, file, policy));
  }

  /// Opens a file of a store, which may be a program's own, and checks what the file says.
  private static StoredFile open(Store store, Location.Remote file, CachePolicy policy) {
    return Cleanup.orUndo(
        () ->
            MisuseException.requireGiven(
                file + ": the file that open() of " + store.getClass().getName() + " returns",
                store.open(file, policy)),
        opened -> {
          String of = "() of " + opened.getClass().getName();
          MisuseException.requireRange(file + ": size" + of, opened.size(), 0, Long.MAX_VALUE);
          MisuseException.requireRange(
              file + ": requestsAtOnce" + of, opened.requestsAtOnce(), 1, Integer.MAX_VALUE);
          var _ = MisuseException.requireGiven(file + ": identity" + of, opened.identity());
          return opened;
        },
        StoredFile::close);
  }

  /// Opens remote files through `given` from now on; [#close] closes it.
  public synchronized void use(FileCache given) {
    caches.add(given);
    cache = given;
  }

  /// The store of a file or folder, for writing.
  ///
  /// @throws MisuseException if no store serves the location, or the store cannot be written
  public WritableStore writable(Location.Remote file) {
    if (serving(file) instanceof WritableStore store) {
      return store;
    }
    throw new MisuseException(
        file
            + ": files of "
            + file.scheme()
            + " can only be read; checkpoints and new files need a local folder or object storage");
  }

  private static void requireVersion(Location file, StoredFile opened) {
    Object version = file.version();
    if (version == null || version.equals(opened.identity())) {
      return;
    }
    String change = "the file changed after its header was read";
    throw switch (file) {
      case Location.Local _ -> new MalformedFileException(file, 0, "changed-meanwhile", change);
      case Location.Remote _ ->
          new TransferException("open", file.toString(), new Failure.Remote(0, change));
    };
  }

  private synchronized Store serving(Location.Remote file) {
    if (!found) {
      remote.addAll(Services.find(Store.class));
      found = true;
    }
    TreeSet<String> schemes = new TreeSet<>();
    for (Store store : remote) {
      if (store.schemes().contains(file.scheme())) {
        return store;
      }
      schemes.addAll(store.schemes());
    }
    throw new MisuseException(
        file
            + ": no store serves "
            + file.scheme()
            + " files, only local paths and "
            + schemes
            // The only store of Gantry's that is a module of its own.
            + (file.scheme().equals("s3") ? "; the module loader-s3 does" : ""));
  }

  @Override
  public synchronized void close() {
    cache = null;
    try {
      Cleanup.forEach(caches, FileCache::close);
    } finally {
      caches.clear();
      Cleanup.forEach(remote, Store::close);
      remote.clear();
    }
  }
}
