// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.spi.FileBytes;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A folder of checkpoints in another store: copies of those in a local folder, under the same names. As
/// there, a checkpoint exists when its manifest does, which is uploaded last.
///
/// One saver at a time may upload. The file `gantry-saver` names the one that opened the folder last; an
/// earlier one notices that before it uploads a manifest, and fails. Thread-safe.
final class RemoteFolder {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteFolder.class);

  private static final String SAVER = "gantry-saver";

  private final GantrySession session;
  private final WritableStore store;
  private final Location.Remote location;
  private final StoreFolder local;
  private final String name = UUID.randomUUID().toString();

  /// All that are whole, in the order in which they were saved; guarded by this. Their folders are
  /// those that they have, or would have, in the local folder.
  private final List<CheckpointFolder> checkpoints = new ArrayList<>();

  private RemoteFolder(
      GantrySession session, WritableStore store, Location.Remote location, StoreFolder local) {
    this.session = session;
    this.store = store;
    this.location = location;
    this.local = local;
  }

  /// The index of a group's tensors in the checkpoint that was saved last, for those who only read.
  ///
  /// @return empty if there is no checkpoint
  /// @throws MisuseException if no store serves the location, or it cannot list what is there
  /// @throws TransferException if the store does not answer, or refuses
  static Optional<Location> latest(GantrySession session, Location.Remote location, String group) {
    StoreFolder nowhere = new StoreFolder(Path.of("."), session.folders());
    RemoteFolder folder = new RemoteFolder(session, session.writable(location), location, nowhere);
    folder.look(false);
    List<CheckpointFolder> all = folder.checkpoints();
    return all.isEmpty()
        ? Optional.empty()
        : Optional.of(folder.at(name(all.getLast()) + "/" + CheckpointFolder.indexName(group)));
  }

  /// Takes a folder for this saver, and removes what uploads that never ended have left there.
  ///
  /// @throws MisuseException if no store serves the location, or that store takes no files
  /// @throws TransferException if the store does not answer, or refuses
  static RemoteFolder open(GantrySession session, Location location, StoreFolder local) {
    if (!(location instanceof Location.Remote remote)
        || remote.uri().getRawQuery() != null
        || remote.uri().getRawFragment() != null) {
      throw new MisuseException(
          "optRemote must be a folder of another store, such as s3://bucket/folder (was "
              + location
              + ")");
    }
    RemoteFolder folder = new RemoteFolder(session, session.writable(remote), remote, local);
    folder.take();
    folder.store.endUploads(remote, StoreFolder::isOfCheckpoint);
    folder.look(true);
    return folder;
  }

  /// The store takes files only, so this saver's name is in one, which stays.
  private void take() {
    Path file = local.root().resolve("." + SAVER);
    byte[] text = name.getBytes(StandardCharsets.UTF_8);
    Memory memory = new Memory.OnHost(MemorySegment.ofArray(text));
    var _ = session.write(List.of(new NewFile(file, List.of(memory))), WriteOptions.defaults());
    store.upload(file, at(SAVER));
  }

  /// Lists the checkpoints.
  ///
  /// @param removes whether to remove what has no manifest
  private synchronized void look(boolean removes) {
    Map<String, Map<String, Long>> folders = new TreeMap<>();
    for (WritableStore.Entry entry : store.below(location)) {
      if (StoreFolder.isOfCheckpoint(entry.name())) {
        folders
            .computeIfAbsent(parent(entry.name()), _ -> new TreeMap<>())
            .put(entry.name().substring(entry.name().indexOf('/') + 1), entry.size());
      }
    }
    folders.forEach((folder, sizes) -> {
      if (!sizes.containsKey(StoreFolder.MANIFEST)) {
        if (removes) {
          sizes.keySet().forEach(file -> store.remove(at(folder + "/" + file)));
        }
        return;
      }
      try {
        Manifest manifest = Manifest.read(at(folder + "/" + StoreFolder.MANIFEST), session);
        requireFiles(manifest, folder + "/", sizes);
        checkpoints.add(new CheckpointFolder(local.root().resolve(folder), manifest.head()));
      } catch (MalformedFileException e) {
        LOG.warn("DAMAGED CHECKPOINT, which counts as none: {}", e.getMessage());
      }
    });
    checkpoints.sort(Comparator.comparingLong(CheckpointFolder::sequence));
  }

  /// @param sizes of what is in the folder, by name
  private void requireFiles(Manifest manifest, String folder, Map<String, Long> sizes) {
    for (Manifest.FileEntry file : manifest.files()) {
      Long size = sizes.get(file.name());
      if (size == null
          || size != file.size()
          || !StoreFolder.isOfCheckpoint(folder + file.name())) {
        throw new MalformedFileException(
            at(folder + file.name()),
            0,
            size == null ? "missing-file" : "wrong-size",
            (size == null ? "not there" : size + " bytes")
                + ", where the manifest has "
                + file.size());
      }
    }
  }

  private static String parent(String name) {
    return name.substring(0, name.indexOf('/'));
  }

  synchronized List<CheckpointFolder> checkpoints() {
    return List.copyOf(checkpoints);
  }

  /// The copy of a checkpoint of the local folder: of the same save, as far as its manifest can be read;
  /// else of the same name.
  Optional<CheckpointFolder> copyOf(Path folder) {
    Optional<Manifest.Head> head;
    try {
      head = Optional.of(Manifest.readHead(StoreFolder.manifest(folder)));
    } catch (MalformedFileException | TransferException _) {
      head = Optional.empty();
    }
    Manifest.Head known = head.orElse(null);
    return checkpoints().stream()
        .filter(one ->
            known == null
                ? one.folder().getFileName().equals(folder.getFileName())
                : one.head().equals(known))
        .findFirst();
  }

  /// Copies a checkpoint to the store, and removes those there that the retention does not want.
  ///
  /// @throws TransferException if a file cannot be read, the store fails, or another saver has taken the
  ///     folder. The checkpoint is not there then
  void upload(CheckpointFolder checkpoint, Retention retention) {
    String folder = name(checkpoint);
    for (Manifest.FileEntry file : checkpoint.manifest().files()) {
      store.upload(checkpoint.folder().resolve(file.name()), at(folder + "/" + file.name()));
    }
    requireOurs();
    store.upload(
        StoreFolder.manifest(checkpoint.folder()), at(folder + "/" + StoreFolder.MANIFEST));
    synchronized (this) {
      checkpoints.remove(checkpoint);
      checkpoints.add(checkpoint);
      checkpoints.sort(Comparator.comparingLong(CheckpointFolder::sequence));
    }
    removeSurplus(retention);
  }

  /// The new checkpoint is there, so what fails here is only told, and tried again with the next one.
  private void removeSurplus(Retention retention) {
    try {
      for (CheckpointFolder one : retention.surplus(checkpoints())) {
        String folder = name(one) + "/";
        store.remove(at(folder + StoreFolder.MANIFEST));
        synchronized (this) {
          checkpoints.remove(one);
        }
        for (WritableStore.Entry entry : store.below(at(folder))) {
          if (StoreFolder.isOfCheckpoint(folder + entry.name())) {
            store.remove(at(folder + entry.name()));
          }
        }
      }
    } catch (TransferException e) {
      LOG.warn("{}: old checkpoints could not be removed: {}", location, e.getMessage());
    }
  }

  private void requireOurs() {
    String now;
    try (FileBytes bytes = FileBytes.open(at(SAVER), session)) {
      ByteBuffer text = ByteBuffer.allocate((int) Math.min(bytes.length(), name.length() + 1L));
      bytes.readFully(text, 0);
      now = StandardCharsets.UTF_8.decode(text.flip()).toString();
    }
    if (!now.equals(name)) {
      throw new TransferException(
          "upload",
          location.toString(),
          new Failure.Remote(0, "another saver has taken this folder"));
    }
  }

  /// Copies a checkpoint into the local folder, by the protocol for saves.
  ///
  /// @param checkpoint one of [#checkpoints]
  /// @throws MalformedFileException if it is damaged there
  /// @throws TransferException if the store or the disk fails. Nothing has changed then
  CheckpointFolder fetch(CheckpointFolder checkpoint) {
    String folder = name(checkpoint) + "/";
    Location there = at(folder + StoreFolder.MANIFEST);
    Manifest manifest = Manifest.read(there, session);
    if (!manifest.head().equals(checkpoint.head())) {
      throw new MalformedFileException(
          there, 0, "changed-manifest", "it is of another save than when the folder was listed");
    }
    Map<String, Long> sizes =
        store.below(at(folder)).stream()
            .collect(Collectors.toMap(WritableStore.Entry::name, WritableStore.Entry::size));
    requireFiles(manifest, folder, sizes);
    Path target = local.vacant(manifest.step(), manifest.sequence());
    local.make(target);
    try {
      List<NewFile> files =
          manifest.files().stream()
              .map(file -> copy(target, folder, file.name(), file.size()))
              .toList();
      requireSame(
          manifest, folder, session.write(files, WriteOptions.defaults().withChecksums(true)));
      var _ =
          session.write(
              List.of(
                  copy(
                      target,
                      folder,
                      StoreFolder.MANIFEST,
                      sizes.getOrDefault(StoreFolder.MANIFEST, 0L))),
              WriteOptions.defaults());
      return new CheckpointFolder(target, Manifest.readHead(StoreFolder.manifest(target)));
    } catch (RuntimeException | Error failure) {
      local.removeUnfinished(target);
      throw failure;
    }
  }

  private NewFile copy(Path target, String folder, String file, long size) {
    return new NewFile(
        target.resolve(file), List.of(new Source.FilePart(new Extent(at(folder + file), 0, size))));
  }

  private void requireSame(Manifest manifest, String folder, WriteReport report) {
    for (int i = 0; i < manifest.files().size(); i++) {
      Manifest.FileEntry file = manifest.files().get(i);
      int sum = report.files().get(i).checksums().orElseThrow().file();
      if (sum != file.crc32c()) {
        throw new MalformedFileException(
            at(folder + file.name()),
            0,
            "checksum-mismatch",
            String.format("CRC32C %08x, and had %08x when it was saved", sum, file.crc32c()));
      }
    }
  }

  private static String name(CheckpointFolder checkpoint) {
    return checkpoint.folder().getFileName().toString();
  }

  /// @param name from this folder on
  private Location at(String name) {
    return Folder.child(location, name);
  }

  @Override
  public String toString() {
    return location.toString();
  }
}
