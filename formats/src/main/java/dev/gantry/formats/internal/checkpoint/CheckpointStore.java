// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.files.FolderLock;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A folder of checkpoints, `gantry-step-N` each, with room for one saver. A save goes by this
/// protocol, so that a crash at any point leaves the checkpoints before it, and the new one whole
/// or not at all:
///
/// 1. make the checkpoint's folder, and synchronise the one it is in
/// 2. write all data files and indexes by the protocol for files (see [GantrySession#write]): then all of them
///    are on the disk under their names
/// 3. write the manifest likewise: from then on the checkpoint exists
/// 4. remove what the retention does not want: of each checkpoint the manifest first
///
/// What is without a manifest was never finished; the next saver that opens the folder removes it.
/// Thread-safe; saves are made one after the other.
public final class CheckpointStore implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointStore.class);

  private static final long MANIFEST_REQUEST_BYTES = 256 << 10;

  private final GantrySession session;
  private final StoreFolder folder;
  private final FolderLock lock;
  private final Retention retention;
  private final long fileBytes;

  /// Copies checkpoints to another store, if one was named.
  private final @Nullable UploadQueue uploads;

  /// What that store has.
  private final Optional<RemoteCopies> copies;

  /// Shared by all who read checkpoints; removing them takes it whole.
  private final ReentrantReadWriteLock removal = new ReentrantReadWriteLock();

  /// This saver's name in histories and in the other store: 16 hexadecimal digits.
  private final String name;

  /// The position of the training.
  ///
  /// @param sequence of the last save
  /// @param history of the checkpoint that was saved or restored last
  private record Position(long sequence, SaveHistory history) {
    Position next(String saver) {
      return new Position(sequence + 1, history.then(saver, sequence + 1));
    }
  }

  /// Not under the lock of [#commit]: to plan a save must not wait for the one under way.
  private final AtomicReference<Position> position;

  /// All that are whole, without what their manifests say of tensors; changed under the lock of this. The
  /// folder's lock keeps other savers away, so no manifest is read again.
  private final List<CheckpointFolder> checkpoints;

  private final PartingWarnings parting;
  private boolean closed;

  private CheckpointStore(
      GantrySession session,
      StoreFolder folder,
      FolderLock lock,
      Retention retention,
      long fileBytes,
      StoreScan found,
      String name,
      Optional<Remote> remote) {
    this.session = session;
    this.folder = folder;
    this.lock = lock;
    this.retention = retention;
    this.fileBytes = fileBytes;
    this.name = name;
    this.checkpoints = new CopyOnWriteArrayList<>(found.checkpoints());
    this.uploads =
        remote
            .map(copies ->
                new UploadQueue(
                    RemoteFolder.open(session, copies.folder(), folder, name),
                    copies.retention(),
                    this::removeUploaded))
            .orElse(null);
    this.copies =
        Optional.ofNullable(uploads)
            .map(queue -> new RemoteCopies(queue.remote(), this.checkpoints));
    Optional<CheckpointFolder> there = lastThere();
    long last = there.map(CheckpointFolder::sequence).orElse(0L);
    this.position =
        new AtomicReference<>(new Position(Math.max(last, found.lastSequence()), SaveHistory.NONE));
    parting = new PartingWarnings(folder.root(), copies.map(RemoteCopies::toString).orElse(""));
    there.ifPresent(other -> parting.warnIfParted(checkpoints, other));
    // An earlier process saved these, and did not upload them.
    checkpoints.stream().filter(one -> one.sequence() > last).forEach(this::submit);
  }

  private void submit(CheckpointFolder checkpoint) {
    if (uploads != null) {
      uploads.submit(checkpoint);
    }
  }

  /// The one in the other store that was saved last.
  private Optional<CheckpointFolder> lastThere() {
    return copies.flatMap(RemoteCopies::last);
  }

  /// The one that was saved last here, and the one that was saved last in the other store.
  private Stream<CheckpointFolder> lasts() {
    return Stream.concat(checkpoints.reversed().stream().limit(1), lastThere().stream());
  }

  /// Opens a folder for saving, makes it where it is missing, and removes what saves that never
  /// ended have left there.
  ///
  /// @param session which must stay open for as long as this saves
  /// @param fileBytes the most bytes of tensors in one file; a larger tensor has a file to itself
  /// @throws MisuseException if another saver has the folder open
  /// @throws TransferException if a file operation fails
  public static CheckpointStore open(
      GantrySession session, Path root, Retention retention, long fileBytes) {
    return open(session, root, retention, fileBytes, Optional.empty());
  }

  /// The folder that checkpoints are copied to once they are on the disk.
  ///
  /// @param retention which of the copies stay
  public record Remote(Location folder, Retention retention) {}

  /// As [#open(GantrySession, Path, Retention, long)]. What was saved and not uploaded before is
  /// uploaded now.
  ///
  /// @throws MisuseException if no store serves the remote folder, or that store takes no files
  /// @throws TransferException if that store does not answer, or refuses
  public static CheckpointStore open(
      GantrySession session,
      Path root,
      Retention retention,
      long fileBytes,
      Optional<Remote> remote) {
    StoreFolder folder = new StoreFolder(session, root);
    folder.create();
    FolderLock lock = FolderLock.take(root, "saver");
    return Cleanup.orUndo(
        () -> {
          folder.removeLeftovers();
          StoreScan found = StoreScan.of(folder);
          String name = HexFormat.of().toHexDigits(UUID.randomUUID().getLeastSignificantBits());
          return new CheckpointStore(
              session, folder, lock, retention, fileBytes, found, name, remote);
        },
        lock::close);
  }

  /// What is there at one moment of the call, though others may save and remove meanwhile. Only manifests
  /// are read, and of each no more is kept than its step, number and metrics. The folder
  /// need not be open for that, and a folder that is missing holds nothing.
  ///
  /// @throws TransferException if a file or folder cannot be read. So it is for a manifest, too, which
  ///     may be whole all the same
  public static CheckpointListing list(GantrySession session, Path root) {
    StoreScan all = StoreScan.of(new StoreFolder(session, root));
    SequencedMap<Long, CheckpointFolder> bySteps = new LinkedHashMap<>();
    // A step that was saved again is where the later save belongs.
    all.checkpoints().forEach(one -> bySteps.putLast(one.step(), one));
    return new CheckpointListing(
        List.copyOf(bySteps.values()),
        all.damaged().stream().map(StoreScan.Damaged::reason).toList(),
        all.doubtful());
  }

  /// Does `work` while this store removes nothing. Within it nothing can be saved: a save removes
  /// old checkpoints, and would wait for itself.
  public <T> T reading(Supplier<T> work) {
    removal.readLock().lock();
    try {
      return work.get();
    } finally {
      removal.readLock().unlock();
    }
  }

  /// Saves a checkpoint, and returns when it is on the disk.
  ///
  /// @throws TransferException if a file or device fails, or the caller cancels: the checkpoints
  ///     before are untouched. Only where the last `fsync` failed may the new one exist already
  /// @throws MisuseException if this is closed, the caller is within [#reading], or a tensor cannot
  ///     be written under its name
  public SavedCheckpoint save(UnsavedCheckpoint checkpoint, WriteOptions options) {
    SavePlan plan = plan(checkpoint);
    return commit(plan, plan.files(), options);
  }

  /// Plans the files that a checkpoint will be. Waits for no save.
  SavePlan plan(UnsavedCheckpoint checkpoint) {
    if (removal.getReadHoldCount() > 0) {
      throw new MisuseException("a save within reading(): it would wait for itself");
    }
    Position next = position.updateAndGet(before -> before.next(name));
    return SavePlan.of(checkpoint, next.sequence(), next.history(), fileBytes);
  }

  /// The files of a checkpoint like this one, for their sizes alone.
  List<NewFile> layout(UnsavedCheckpoint checkpoint) {
    return SavePlan.of(checkpoint, 0, SaveHistory.NONE, fileBytes).files();
  }

  /// Saves what was planned.
  ///
  /// @param files the plan's files, or a snapshot of them
  synchronized SavedCheckpoint commit(SavePlan plan, List<NewFile> files, WriteOptions options) {
    if (closed) {
      throw new MisuseException("this checkpoint store is closed");
    }
    // Not before: a save that was planned earlier may have taken the name since.
    Path target = folder.vacant(plan.checkpoint().step(), plan.sequence());
    // 1
    folder.make(target);
    SavedCheckpoint saved =
        Cleanup.orUndo(
            () -> {
              // 2
              WriteReport report =
                  session.write(SavePlan.in(target, files), options.withChecksums(true));
              CheckpointFolder stored =
                  new CheckpointFolder(session, target, plan.manifest(report));
              parting.warnOf(plan, lasts());
              add(new CheckpointFolder(session, target, stored.manifest().head()));
              // 3
              writeManifest(stored, options);
              return new SavedCheckpoint(stored, report);
            },
            // Unless the manifest has its name already: then all is there but the certainty.
            () -> folder.removeUnfinished(target));
    // Not the last one by its number: a save that was planned later may be there already.
    checkpoints.stream().filter(one -> one.isAt(target)).findFirst().ifPresent(this::submit);
    // 4
    removeSurplus();
    return saved;
  }

  /// Takes the place of whatever had this folder before, such as a save that failed with its manifest.
  private void add(CheckpointFolder checkpoint) {
    checkpoints.removeIf(one -> one.isAt(checkpoint.folder()));
    checkpoints.add(checkpoint);
    checkpoints.sort(Comparator.comparingLong(CheckpointFolder::sequence));
  }

  /// Says that the training goes on from a checkpoint, to which later saves belong.
  public void goOnFrom(CheckpointFolder restored) {
    position.updateAndGet(before -> new Position(before.sequence(), restored.head().history()));
  }

  private void writeManifest(CheckpointFolder stored, WriteOptions options) {
    byte[] bytes = ManifestWriter.bytes(stored.manifest());
    NewFile file =
        new NewFile(
            StoreFolder.manifest(stored.folder()),
            List.of(new Memory.OnHost(MemorySegment.ofArray(bytes))));
    session.write(
        List.of(file),
        WriteOptions.defaults()
            .withThreads(1)
            .withRequestBytes(MANIFEST_REQUEST_BYTES)
            .withPageCache(options.pageCache())
            .withCancellation(options.cancellation()));
  }

  /// Removes checkpoints that stayed on the disk only until they were in the other store.
  private synchronized void removeUploaded() {
    if (!closed) {
      removeSurplus();
    }
  }

  /// The new checkpoint is saved, so what fails here is only told. What still has its manifest is
  /// tried again with the next save, the rest when the folder is next opened.
  private void removeSurplus() {
    removal.writeLock().lock();
    try {
      // Those of saves that failed, and what was removed by hand.
      checkpoints.removeIf(one -> StoreFolder.hasNoManifest(one.folder()));
      for (CheckpointFolder one : retention.surplus(checkpoints)) {
        if (uploads != null && !uploads.letGo(one)) {
          continue;
        }
        folder.remove(one.folder());
        checkpoints.remove(one);
      }
    } catch (TransferException e) {
      LOG.warn("{}: old checkpoints could not be removed: {}", folder.root(), e.getMessage());
    } finally {
      removal.writeLock().unlock();
    }
  }

  /// Waits for the save and the uploads under way, and lets another saver have the folder.
  ///
  /// @throws dev.gantry.core.GantryException if a checkpoint could not be uploaded
  @Override
  public void close() {
    if (removal.getReadHoldCount() > 0) {
      throw new MisuseException("a close within reading(): it would wait for a save that waits");
    }
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    // This does not hold the lock, since the upload takes it at its end.
    try {
      if (uploads != null) {
        uploads.close();
      }
    } finally {
      lock.close();
    }
  }

  /// Waits until all checkpoints that were saved are in the other store, if there is one.
  ///
  /// @throws dev.gantry.core.GantryException if one could not be uploaded
  public void awaitUploads() {
    if (uploads != null) {
      uploads.await();
    }
  }

  /// Whether one of the checkpoints has no values that are NaN or infinite.
  public boolean hasFinite() {
    return checkpoints.stream().anyMatch(CheckpointFolder::isFinite);
  }

  /// Whether the other store has a copy of a checkpoint that lies in the folder.
  public boolean hasCopy(Path checkpoint) {
    return copies.flatMap(there -> there.copyOf(checkpoint)).isPresent();
  }

  /// Whether the other store has a checkpoint that was saved before one of the folder.
  public boolean hasEarlier(Path checkpoint) {
    return copies.filter(there -> there.hasEarlier(checkpoint)).isPresent();
  }

  /// Puts the copy in the other store in the place of a checkpoint that is damaged here, which is removed
  /// once the copy is on the disk and its checksums are right.
  ///
  /// @param damaged of which there [#hasCopy]
  /// @throws MalformedFileException if the copy is damaged, too
  /// @throws TransferException if the other store or the disk fails
  public synchronized void fetchInstead(Path damaged) {
    copies
        .orElseThrow(() -> new IllegalStateException("no other store"))
        .fetchCopyOf(damaged)
        .ifPresent(this::add);
    removal.writeLock().lock();
    try {
      folder.remove(damaged);
      checkpoints.removeIf(one -> one.isAt(damaged));
    } finally {
      removal.writeLock().unlock();
    }
  }

  /// Copies the checkpoint that was saved last from the other store, if the folder has none that was saved
  /// as late.
  ///
  /// @param fallBack whether one that is damaged there gives way to the one before it, with a warning in the
  ///     log
  /// @throws MalformedFileException if it is damaged there; with `fallBack`, if all are, and the folder has
  ///     none
  /// @throws TransferException if the other store or the disk fails
  public synchronized void fetchLatest(boolean fallBack) {
    copies.flatMap(there -> there.fetchBefore(Long.MAX_VALUE, fallBack)).ifPresent(this::add);
  }

  /// As [#fetchLatest], of those that were saved before one that is damaged and has no copy.
  public synchronized void fetchBefore(Path damaged) {
    checkpoints.stream()
        .filter(one -> one.isAt(damaged))
        .findFirst()
        .flatMap(one -> copies.flatMap(there -> there.fetchBefore(one.sequence(), true)))
        .ifPresent(this::add);
  }

  /// As [#fetchLatest], for the checkpoint of a step, if the folder has none of this step.
  public synchronized void fetch(long step) {
    copies.flatMap(there -> there.fetchStep(step)).ifPresent(this::add);
  }
}
