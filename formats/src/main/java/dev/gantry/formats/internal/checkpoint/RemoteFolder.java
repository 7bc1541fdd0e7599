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
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.spi.FileBytes;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.BiPredicate;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A folder of checkpoints in another store: copies of a local folder's checkpoints, with names
/// that are unique among all savers. A copy exists as soon as its manifest does, which is uploaded
/// last.
///
/// One saver at a time may upload. The file `gantry-saver` names the saver that opened the folder
/// last; an earlier saver reads this file before each upload, and its upload fails. Thread-safe.
final class RemoteFolder {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteFolder.class);

  private static final String SAVER = "gantry-saver";

  private final GantrySession session;
  private final WritableStore store;
  private final Location.Remote location;
  private final StoreFolder local;
  private final String name;
  private final RemoteScan scan;

  /// The checkpoints of the local folder. The [CheckpointStore] changes this list under its lock;
  /// it calls the fetching methods under that lock, too, and adds each fetched checkpoint to the
  /// list.
  private final List<CheckpointFolder> here;

  /// The complete copies in the order of their saves; guarded by this.
  private final List<CheckpointFolder> checkpoints = new ArrayList<>();

  private RemoteFolder(
      GantrySession session,
      Location.Remote location,
      StoreFolder local,
      List<CheckpointFolder> here,
      String name) {
    this.here = here;
    this.session = session;
    this.store = session.writable(location);
    this.location = location;
    this.local = local;
    this.name = name;
    this.scan = new RemoteScan(session, store, location, local.root());
  }

  /// Takes a folder for this saver, and removes the files of unfinished uploads, except those of
  /// the checkpoints that are [#missing].
  ///
  /// @param here the checkpoints of the local folder
  /// @param retention says which copies stay
  /// @param name the saver's name, 16 hexadecimal digits
  /// @throws MisuseException if no store serves the location, or that store takes no files
  /// @throws TransferException if the store does not answer, or refuses access
  static RemoteFolder open(
      GantrySession session,
      Location location,
      StoreFolder local,
      List<CheckpointFolder> here,
      Retention retention,
      String name) {
    if (!(location instanceof Location.Remote remote)
        || remote.uri().getRawQuery() != null
        || remote.uri().getRawFragment() != null) {
      throw new MisuseException(
          "optRemote must be a folder of another store, such as s3://bucket/folder (was "
              + location
              + ")");
    }
    RemoteFolder folder = new RemoteFolder(session, remote, local, here, name);
    folder.take();
    folder.refresh();
    Set<String> resumed =
        folder.missing(retention).stream()
            .map(one -> StoreFolder.copyName(one, name))
            .collect(Collectors.toSet());
    folder.store.endUploads(
        remote,
        file ->
            StoreFolder.isOfCheckpoint(file)
                && !resumed.contains(file.substring(0, file.indexOf('/'))));
    folder.removeLeftovers(resumed);
    return folder;
  }

  /// Returns the checkpoints of the local folder that have no copy, except those whose copy the
  /// retention would not keep.
  List<CheckpointFolder> missing(Retention retention) {
    List<CheckpointFolder> copies = checkpoints();
    Set<Manifest> copied = copies.stream().map(CheckpointFolder::head).collect(Collectors.toSet());
    List<CheckpointFolder> all = new ArrayList<>(copies);
    here.stream().filter(one -> !copied.contains(one.head())).forEach(all::add);
    Set<CheckpointFolder> kept = retention.kept(all).keySet();
    return all.subList(copies.size(), all.size()).stream().filter(kept::contains).toList();
  }

  /// Uploads this saver's name. It writes the name to a local file first, since a store uploads
  /// only files; the local file stays.
  private void take() {
    Path file = local.root().resolve("." + SAVER);
    byte[] text = name.getBytes(StandardCharsets.UTF_8);
    Memory memory = new Memory.OnHost(MemorySegment.ofArray(text));
    var _ = session.write(List.of(new NewFile(file, List.of(memory))), WriteOptions.defaults());
    store.upload(file, scan.at(SAVER));
  }

  /// @param resumed the names of copies whose upload this saver will continue
  private void removeLeftovers(Set<String> resumed) {
    SequencedMap<String, Map<String, Long>> unfinished = scan.folders();
    unfinished.values().removeIf(sizes -> sizes.containsKey(StoreFolder.MANIFEST));
    unfinished.keySet().removeAll(resumed);
    if (!unfinished.isEmpty()) {
      // If the folder still belongs to this saver, no other saver has begun an upload before this
      // listing.
      requireOurs();
      unfinished.forEach((folder, sizes) -> sizes.keySet().forEach(file -> remove(folder, file)));
      // The saver that had the folder before may have uploaded the manifest of files that were
      // removed here.
      SequencedMap<String, Map<String, Long>> late = scan.folders();
      late.keySet().retainAll(unfinished.keySet());
      late.forEach((folder, sizes) -> sizes.keySet().forEach(file -> remove(folder, file)));
    }
  }

  private void remove(String folder, String file) {
    store.remove(scan.at(folder + "/" + file));
  }

  /// Lists the checkpoints anew.
  ///
  /// @return whether the list has changed
  boolean refresh() {
    List<CheckpointFolder> found = scan.checkpoints();
    synchronized (this) {
      boolean changed = !found.equals(checkpoints);
      checkpoints.clear();
      checkpoints.addAll(found);
      return changed;
    }
  }

  synchronized List<CheckpointFolder> checkpoints() {
    return List.copyOf(checkpoints);
  }

  /// The copy that was saved last.
  Optional<CheckpointFolder> last() {
    return checkpoints().reversed().stream().findFirst();
  }

  /// Finds the copy of a local checkpoint. If the local manifest can be read, this is the copy of
  /// the same save. Otherwise it is the copy with the same step and number; if the number is not
  /// known either, it is the last copy of the step that belongs to no other checkpoint of the
  /// local folder.
  Optional<CheckpointFolder> copyOf(Path folder) {
    OptionalLong step = StoreFolder.step(folder);
    OptionalLong sequence = OptionalLong.empty();
    Path manifest = StoreFolder.manifest(folder);
    try {
      Manifest head = Manifest.readHead(session, manifest);
      return checkpoints().stream().filter(one -> one.head().equals(head)).findFirst();
    } catch (MalformedFileException _) {
      if (step.isPresent()) {
        sequence = Manifest.sequence(session, manifest, step.getAsLong());
      }
    } catch (TransferException _) {
      // The manifest cannot be read, so only the folder's name identifies the checkpoint.
    }
    OptionalLong number = sequence;
    return checkpoints().reversed().stream()
        .filter(one -> step.equals(OptionalLong.of(one.step())))
        .filter(one ->
            number.isPresent()
                ? number.getAsLong() == one.sequence()
                : here.stream()
                    .noneMatch(other -> !other.isAt(folder) && other.head().equals(one.head())))
        .findFirst();
  }

  /// Whether any copy was saved before a checkpoint of the folder.
  boolean hasEarlier(Path checkpoint) {
    return here.stream()
        .filter(one -> one.isAt(checkpoint))
        .anyMatch(
            one -> checkpoints().stream().anyMatch(there -> there.sequence() < one.sequence()));
  }

  /// @return the fetched copy; empty if the local folder has the same save under another name
  Optional<CheckpointFolder> fetchCopyOf(Path damaged) {
    CheckpointFolder copy = copyOf(damaged).orElseThrow();
    boolean isHere =
        here.stream().anyMatch(one -> one.head().equals(copy.head()) && !one.isAt(damaged));
    return isHere ? Optional.empty() : Optional.of(fetch(copy));
  }

  /// Fetches as [CheckpointStore#fetchLatest] does, among the checkpoints that were saved before a save.
  Optional<CheckpointFolder> fetchBefore(long sequence, boolean fallBack) {
    return fetch(
        one -> one.sequence() < sequence,
        (ours, there) -> ours.sequence() >= there.sequence(),
        fallBack);
  }

  /// Fetches a step's checkpoint, as [CheckpointStore#fetch] does.
  Optional<CheckpointFolder> fetchStep(long step) {
    return fetch(one -> one.step() == step, (_, _) -> true, false);
  }

  /// @param serves whether a checkpoint in the folder makes it needless to fetch a copy from the
  ///     other store; both match `wanted`
  private Optional<CheckpointFolder> fetch(
      Predicate<CheckpointFolder> wanted,
      BiPredicate<CheckpointFolder, CheckpointFolder> serves,
      boolean fallBack) {
    here.removeIf(one -> StoreFolder.hasNoManifest(one.folder()));
    List<CheckpointFolder> ours = here.stream().filter(wanted).toList();
    Set<CheckpointFolder> tried = new HashSet<>();
    MalformedFileException damage = null;
    while (true) {
      Optional<CheckpointFolder> next =
          checkpoints().reversed().stream()
              .filter(wanted)
              .filter(one -> !tried.contains(one))
              .findFirst();
      if (next.isEmpty() || ours.stream().anyMatch(one -> serves.test(one, next.get()))) {
        if (damage != null && ours.isEmpty()) {
          throw damage;
        }
        return Optional.empty();
      }
      try {
        return Optional.of(fetch(next.get()));
      } catch (MalformedFileException damaged) {
        if (!fallBack) {
          throw damaged;
        }
        LOG.warn("DAMAGED CHECKPOINT, falling back to an earlier one: {}", damaged.getMessage());
        tried.add(next.get());
        damage = damaged;
      } catch (TransferException failed) {
        // Another saver may have removed the copy since it was listed.
        if (!failed.isNotFound() || !refresh()) {
          throw failed;
        }
      }
    }
  }

  /// Uploads a checkpoint to the store, except the files that an earlier process has uploaded,
  /// and removes the copies that the retention does not keep.
  ///
  /// @throws MalformedFileException if the checkpoint is damaged on the disk
  /// @throws TransferException if a file cannot be read, the store fails, or another saver has taken the
  ///     folder. The store has no copy then
  void upload(CheckpointFolder checkpoint, Retention retention) {
    checkpoint.checkSizes();
    requireOurs();
    String folder = StoreFolder.copyName(checkpoint, name);
    Map<String, Long> there = scan.folders().getOrDefault(folder, Map.of());
    for (Manifest.FileEntry file : checkpoint.manifest().files()) {
      // The folder's name identifies the save, so a file of this name and size has the same bytes.
      if (!Long.valueOf(file.size()).equals(there.get(file.name()))) {
        store.upload(checkpoint.folder().resolve(file.name()), scan.at(folder + "/" + file.name()));
      }
    }
    requireOurs();
    store.upload(
        StoreFolder.manifest(checkpoint.folder()), scan.at(folder + "/" + StoreFolder.MANIFEST));
    // A saver that took the folder before the manifest was uploaded may have removed the other
    // files.
    Cleanup.orUndo(this::requireOurs, () -> removeIncomplete(folder, checkpoint.manifest()));
    Location at = scan.at(folder + "/" + StoreFolder.MANIFEST);
    CheckpointFolder copy =
        new CheckpointFolder(session, local.root().resolve(folder), at, checkpoint.head());
    synchronized (this) {
      checkpoints.remove(copy);
      checkpoints.add(copy);
      checkpoints.sort(Comparator.comparingLong(CheckpointFolder::sequence));
    }
    removeSurplus(retention);
  }

  /// Removes the manifest of a copy whose files are gone.
  private void removeIncomplete(String folder, Manifest manifest) {
    Set<String> there = scan.folders().getOrDefault(folder, Map.of()).keySet();
    if (!manifest.files().stream().map(Manifest.FileEntry::name).allMatch(there::contains)) {
      remove(folder, StoreFolder.MANIFEST);
    }
  }

  /// The name of a checkpoint in the store.
  private static String name(CheckpointFolder checkpoint) {
    return checkpoint.folder().getFileName().toString();
  }

  /// Removes the copies that the retention does not keep. The new copy exists by now, so failures are only
  /// logged; the next upload tries again.
  private void removeSurplus(Retention retention) {
    List<TransferException> failures =
        StoreFolder.removeEach(
            retention.surplus(checkpoints()), one -> scan.remove(one, () -> forget(one)));
    if (!failures.isEmpty()) {
      LOG.warn(
          "{}: old checkpoints could not be removed: {}", location, StoreFolder.words(failures));
    }
  }

  private synchronized void forget(CheckpointFolder removed) {
    checkpoints.remove(removed);
  }

  /// Whether this saver still has the folder; false also where the store does not answer.
  boolean isOurs() {
    try {
      requireOurs();
      return true;
    } catch (TransferException _) {
      return false;
    }
  }

  /// @throws TransferException if another saver has taken the folder, or the store does not answer
  private void requireOurs() {
    String now;
    try (FileBytes bytes = FileBytes.open(session, scan.at(SAVER))) {
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
  /// @param checkpoint a copy of [#checkpoints]
  /// @throws MalformedFileException if the copy is damaged
  /// @throws TransferException if the store or the disk fails; nothing has changed then
  CheckpointFolder fetch(CheckpointFolder checkpoint) {
    CheckpointFolder copied = checkpoint.afresh();
    copied.checkSizes();
    Manifest manifest = copied.manifest();
    Path target = local.vacant(manifest.step(), manifest.sequence());
    local.make(target);
    return Cleanup.orUndo(
        () -> {
          String folder = name(checkpoint);
          List<NewFile> files =
              manifest.files().stream()
                  .map(file -> copy(target, folder, file.name(), file.size()))
                  .toList();
          requireSame(
              manifest, folder, session.write(files, WriteOptions.defaults().withChecksums(true)));
          long size;
          try (FileBytes bytes =
              FileBytes.open(session, scan.at(folder + "/" + StoreFolder.MANIFEST))) {
            size = bytes.length();
          }
          var _ =
              session.write(
                  List.of(copy(target, folder, StoreFolder.MANIFEST, size)),
                  WriteOptions.defaults());
          return new CheckpointFolder(
              session, target, Manifest.readHead(session, StoreFolder.manifest(target)));
        },
        () -> local.removeUnfinished(target));
  }

  private NewFile copy(Path target, String folder, String file, long size) {
    return new NewFile(
        target.resolve(file),
        List.of(new Source.FilePart(new Extent(scan.at(folder + "/" + file), 0, size))));
  }

  private void requireSame(Manifest manifest, String folder, WriteReport report) {
    for (int i = 0; i < manifest.files().size(); i++) {
      Manifest.FileEntry file = manifest.files().get(i);
      int sum = report.files().get(i).checksums().orElseThrow().file();
      if (sum != file.crc32c()) {
        throw new MalformedFileException(
            scan.at(folder + "/" + file.name()),
            0,
            "checksum-mismatch",
            String.format("CRC32C %08x, and had %08x when it was saved", sum, file.crc32c()));
      }
    }
  }

  @Override
  public String toString() {
    return location.toString();
  }
}
