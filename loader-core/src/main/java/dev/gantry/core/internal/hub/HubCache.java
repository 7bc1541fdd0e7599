// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.Location;
import dev.gantry.core.internal.cache.BlobPlace;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The cache folder of the hub, as Python's `huggingface_hub` 1.33 lays it out:
///
/// ```text
/// models--OWNER--NAME/blobs/ETAG the bytes of a file models--OWNER--NAME/snapshots/COMMIT/PATH a
/// link to the bytes models--OWNER--NAME/refs/REVISION the commit of a branch or tag
/// models--OWNER--NAME/trees/COMMIT.json the list of a commit's files
/// models--OWNER--NAME/.no_exist/COMMIT/PATH an empty file: the commit has no such file
/// .locks/models--OWNER--NAME/ETAG.lock locked by flock(2) by the process that fetches the bytes
/// ```
///
/// A blob gets its name when it is complete. Before that, its file is named
/// `ETAG.gantry.incomplete`: no version of Python's library takes this file for a partial download
/// of its own, which it would append to. Thread-safe.
final class HubCache implements BlobPlace {
  private static final String INCOMPLETE = ".gantry.incomplete";

  /// Tells backup programs that they need not keep the folder.
  private static final String TAG =
      """
      Signature: 8a477f597d28d172789f06886806bc55
      # This file is a cache directory tag. Its folder has copies of files of the Hugging Face hub.
      """;

  private final Path root;
  private final HubDisk disk;

  /// The snapshots' files that become links when a blob is complete, by the path of its incomplete
  /// file.
  private final Map<Path, Set<Path>> pointers = new HashMap<>();

  /// The futures that tell waiting readers that a blob is published, by the path of its incomplete
  /// file.
  private final Map<Path, CompletableFuture<Void>> awaited = new HashMap<>();

  /// The tree that was used last. It is kept since the files of one commit are opened one after
  /// the other.
  private volatile @Nullable KnownTree known;

  private record KnownTree(Path file, HubTree tree) {}

  HubCache(Path root, HubDisk disk) {
    this.root = root;
    this.disk = disk;
  }

  private Path folder(HubName name) {
    return root.resolve(name.folder());
  }

  Path blob(HubName name, String etag) {
    return folder(name).resolve("blobs").resolve(etag);
  }

  /// Returns the path of a snapshot's file, which may not exist.
  ///
  /// @param name a name whose revision is a commit
  Path pointer(HubName name) {
    return snapshot(name).resolve(name.path());
  }

  /// Returns the folder of a snapshot, which may not exist.
  Path snapshot(HubName name) {
    return folder(name).resolve("snapshots").resolve(name.revision());
  }

  Path lockFile(HubName name, String etag) {
    return locks(name.folder()).resolve(etag + ".lock");
  }

  private Path locks(String folder) {
    return root.resolve(".locks").resolve(folder);
  }

  /// Returns the commit of a revision at the time when the hub was last asked.
  Optional<String> commit(HubName name) {
    if (name.isFixed()) {
      return Optional.of(name.revision());
    }
    try {
      return Optional.of(Files.readString(ref(name), StandardCharsets.UTF_8).strip())
          .filter(HubName::isCommit);
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  private Path ref(HubName name) {
    return folder(name).resolve("refs").resolve(name.revision());
  }

  /// Records which commit a revision is; does nothing if the folder cannot be written.
  void note(HubName name, String commit) {
    if (!name.isFixed() && !commit(name).equals(Optional.of(commit))) {
      disk.note(ref(name), commit);
    }
  }

  /// Returns the list of a commit's files, if the hub was asked for it before.
  Optional<HubTree> tree(HubName name) {
    Path file = trees(name);
    KnownTree last = known;
    if (last != null && last.file().equals(file)) {
      return Optional.of(last.tree());
    }
    try {
      HubTree read = HubTree.read(Files.readString(file));
      known = new KnownTree(file, read);
      return Optional.of(read);
    } catch (IOException _) {
      return Optional.empty();
    }
  }

  void keep(HubName name, HubTree tree) {
    known = new KnownTree(trees(name), tree);
    try {
      disk.note(trees(name), tree.text());
    } catch (IOException e) {
      throw new IllegalStateException("no JSON of a list", e);
    }
  }

  private Path trees(HubName name) {
    return folder(name).resolve("trees").resolve(name.revision() + ".json");
  }

  boolean isMissing(HubName name) {
    return Files.exists(missing(name));
  }

  /// Records that a commit has no such file.
  void noteMissing(HubName name) {
    disk.note(missing(name), "");
  }

  private Path missing(HubName name) {
    return folder(name).resolve(".no_exist").resolve(name.revision()).resolve(name.path());
  }

  /// Makes the folders of a blob and its lock.
  ///
  /// @throws dev.gantry.core.MisuseException if [Folders#requireMakeable] refuses the cache's folder
  /// @throws dev.gantry.core.TransferException if the folders cannot be made
  void makeFolders(HubName name, String etag) {
    Path blobs = folder(name).resolve("blobs");
    Folders.requireMakeable(blobs);
    try {
      Files.createDirectories(blobs);
      Files.createDirectories(locks(name.folder()));
    } catch (IOException e) {
      throw FileErrors.of("mkdir", blobs.toString(), e);
    }
    if (!Files.exists(root.resolve("CACHEDIR.TAG"))) {
      disk.note(root.resolve("CACHEDIR.TAG"), TAG);
    }
  }

  /// Makes [#whole] link a snapshot's file to the blob.
  void expect(Path incomplete, Path pointer) {
    synchronized (pointers) {
      boolean _ = pointers.computeIfAbsent(incomplete, _ -> new HashSet<>()).add(pointer);
    }
  }

  /// Returns a future that completes when a blob is published or cannot be, or when this process
  /// has closed its file.
  ///
  /// @param incomplete the blob's incomplete file, which is open
  CompletableFuture<Void> published(Path incomplete) {
    synchronized (pointers) {
      return awaited.computeIfAbsent(incomplete, _ -> new CompletableFuture<>()).copy();
    }
  }

  @Override
  public Path incomplete(Location.Remote file, String version) {
    return incomplete(HubName.of(file), version);
  }

  Path incomplete(HubName name, String etag) {
    return blob(name, etag).resolveSibling(etag + INCOMPLETE);
  }

  private static Path blobOf(Path incomplete) {
    String name = incomplete.getFileName().toString();
    return incomplete.resolveSibling(name.substring(0, name.length() - INCOMPLETE.length()));
  }

  @Override
  public Path lock(Path incomplete) {
    return locks(root.relativize(incomplete).getName(0).toString()).resolve("gantry.lock");
  }

  @Override
  public void whole(Path incomplete) {
    Path blob = blobOf(incomplete);
    if (!Files.exists(blob)) {
      disk.publish(incomplete, blob);
    }
    CompletableFuture<Void> told;
    Set<Path> links;
    synchronized (pointers) {
      links = pointers.getOrDefault(incomplete, Set.of());
      told = awaited.get(incomplete);
    }
    links.forEach(pointer -> disk.link(blob, pointer));
    tell(told);
  }

  @Override
  public boolean isPublished(Path incomplete) {
    return Files.exists(blobOf(incomplete));
  }

  @Override
  public void failed(Path incomplete) {
    CompletableFuture<Void> told;
    synchronized (pointers) {
      told = awaited.get(incomplete);
    }
    tell(told);
  }

  @Override
  public void closed(Path incomplete) {
    CompletableFuture<Void> told;
    synchronized (pointers) {
      pointers.remove(incomplete);
      told = awaited.remove(incomplete);
    }
    tell(told);
  }

  private static void tell(@Nullable CompletableFuture<Void> told) {
    if (told != null) {
      told.complete(null);
    }
  }

  /// Describes the files in which any program has stored a blob's bytes so far. The text changes
  /// while bytes arrive.
  String progress(Path blob) {
    StringBuilder seen = new StringBuilder();
    try (Stream<Path> files = Files.list(blob.getParent())) {
      for (Path file : (Iterable<Path>) files.sorted()::iterator) {
        if (file.getFileName().toString().startsWith(blob.getFileName().toString())) {
          seen.append(Files.size(file)).append(Files.getLastModifiedTime(file));
        }
      }
    } catch (IOException _) {
      // Another process renamed a file during the listing, which is progress.
      seen.append(System.nanoTime());
    }
    return seen.toString();
  }
}
