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
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A folder of checkpoints, each in a folder `gantry-step-N`, that one saver has open. A save
/// follows this protocol, so that a crash at any point leaves the earlier checkpoints intact, and
/// the new checkpoint complete or absent:
///
/// 1. Make the checkpoint's folder, and `fsync` its parent.
/// 2. Write all data files and indexes by [GantrySession#write]; afterwards all of them are on the
///    disk under their names.
/// 3. Write the manifest in the same way. From then on, the checkpoint exists.
/// 4. Remove the checkpoints that the retention does not keep, the manifest of each first.
///
/// A checkpoint without a manifest was never finished; the next saver that opens the folder removes it.
/// Thread-safe; saves run one after the other.
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

  /// The checkpoints in the other store, if one was named.
  private final Optional<RemoteFolder> copies;

  /// Read-locked while checkpoints are read, write-locked while some are removed.
  private final ReentrantReadWriteLock removal = new ReentrantReadWriteLock();

  /// This saver's name in histories and in the other store: 16 hexadecimal digits.
  private final String name;

  /// The saver's position: the last save's number, and the history that the next save continues.
  ///
  /// @param sequence the number of the last save
  /// @param history the history of the checkpoint that was saved or restored last
  private record Position(long sequence, SaveHistory history) {
    Position next(String saver) {
      return new Position(sequence + 1, history.then(saver, sequence + 1));
    }
  }

  /// The field is atomic instead of guarded by the lock of [#commit], so that planning a save does
  /// not wait for the save under way.
  private final AtomicReference<Position> position;

  /// The complete checkpoints, by their manifests' heads alone; guarded by this. The folder's lock
  /// excludes other savers, so the manifests need not be read again.
  private final List<CheckpointFolder> checkpoints;

  private final HistoryWarnings histories;
  private boolean closed;

  private CheckpointStore(
      GantrySession session,
      StoreFolder folder,
      FolderLock lock,
      Retention retention,
      long fileBytes,
      CheckpointListing found,
      String name,
      Optional<Remote> remote) {
    this.session = session;
    this.folder = folder;
    this.lock = lock;
    this.retention = retention;
    this.fileBytes = fileBytes;
    this.name = name;
    this.checkpoints = new CopyOnWriteArrayList<>(found.saves());
    this.uploads =
        remote
            .map(copies ->
                new UploadQueue(
                    RemoteFolder.open(
                        session, copies.folder(), folder, checkpoints, copies.retention(), name),
                    copies.retention(),
                    this::removeUploaded))
            .orElse(null);
    this.copies = Optional.ofNullable(uploads).map(UploadQueue::remote);
    Optional<CheckpointFolder> there = lastThere();
    long last = there.map(CheckpointFolder::sequence).orElse(0L);
    this.position =
        new AtomicReference<>(new Position(Math.max(last, found.lastSequence()), SaveHistory.NONE));
    histories = new HistoryWarnings(folder.root(), copies.map(RemoteFolder::toString).orElse(""));
    there.ifPresent(other -> histories.warnIfTwo(checkpoints, other));
    if (uploads != null) {
      uploads.submitMissing();
    }
  }

  private void submit(CheckpointFolder checkpoint) {
    if (uploads != null) {
      uploads.submit(checkpoint);
    }
  }

  /// The checkpoint in the other store that was saved last.
  private Optional<CheckpointFolder> lastThere() {
    return copies.flatMap(RemoteFolder::last);
  }

  /// Returns the last saved checkpoint of the folder, and the last saved one of the other store.
  private Stream<CheckpointFolder> lasts() {
    return Stream.concat(checkpoints.reversed().stream().limit(1), lastThere().stream());
  }

  /// Opens a folder for saving: makes it where it is missing, and removes what unfinished saves have left
  /// there.
  ///
  /// @param session must stay open until this is closed
  /// @param fileBytes the most bytes of tensors in one file; a larger tensor has a file to itself
  /// @throws MisuseException if another saver has the folder open
  /// @throws TransferException if a file operation fails
  public static CheckpointStore open(
      GantrySession session, Path root, Retention retention, long fileBytes) {
    return open(session, root, retention, fileBytes, Optional.empty());
  }

  /// The folder that checkpoints are copied to once they are on the disk.
  ///
  /// @param retention says which of the copies stay
  public record Remote(Location folder, Retention retention) {}

  /// Opens a folder as [#open(GantrySession, Path, Retention, long)] does, and copies its checkpoints to
  /// another store: each new one, and those that an earlier saver did not upload.
  ///
  /// @throws MisuseException if no store serves the remote folder, or that store takes no files
  /// @throws TransferException if that store does not answer, or refuses access
  public static CheckpointStore open(
      GantrySession session,
      Path root,
      Retention retention,
      long fileBytes,
      Optional<Remote> remote) {
    StoreFolder folder = new StoreFolder(session, root);
    folder.create();
    return Cleanup.orUndo(
        () -> FolderLock.take(root, "saver"),
        lock -> {
          folder.removeLeftovers();
          CheckpointListing found = CheckpointListing.of(folder);
          String name = HexFormat.of().toHexDigits(UUID.randomUUID().getLeastSignificantBits());
          return new CheckpointStore(
              session, folder, lock, retention, fileBytes, found, name, remote);
        },
        FolderLock::close);
  }

  /// Lists the checkpoints that the folder holds at one moment of the call, while savers may save
  /// and remove checkpoints. Only the manifests are read, and only their heads are kept. The
  /// folder need not be open; a missing folder has no checkpoints.
  ///
  /// @throws MisuseException if this is a file
  /// @throws TransferException if a folder or a manifest cannot be read: an unreadable checkpoint may be
  ///     intact, so it is not listed as damaged
  public static CheckpointListing list(GantrySession session, Path root) {
    if (Files.isRegularFile(root)) {
      throw new MisuseException("checkpoints are in folders (was the file " + root + ")");
    }
    return CheckpointListing.of(new StoreFolder(session, root));
  }

  /// Runs `work` while this store removes no checkpoint. `work` cannot save, because a save
  /// removes old checkpoints and would wait for the end of `work`.
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
  /// @throws TransferException if a file or device fails, or the caller cancels. Earlier checkpoints are
  ///     untouched; the new one can exist only if the last `fsync` has failed
  /// @throws MisuseException if this is closed, the caller is within [#reading], or a tensor cannot
  ///     be written under its name
  public SavedCheckpoint save(UnsavedCheckpoint checkpoint, WriteOptions options) {
    SavePlan plan = plan(checkpoint);
    return commit(plan, plan.files(), options);
  }

  /// Plans a checkpoint's files. Waits for no save.
  SavePlan plan(UnsavedCheckpoint checkpoint) {
    if (removal.getReadHoldCount() > 0) {
      throw new MisuseException("a save within reading(): it would wait for itself");
    }
    Position next = position.updateAndGet(before -> before.next(name));
    return SavePlan.of(checkpoint, next.sequence(), next.history(), fileBytes);
  }

  /// Lays out a checkpoint's files, for callers that need only their sizes; no sequence number is
  /// used up.
  List<NewFile> layout(UnsavedCheckpoint checkpoint) {
    return SavePlan.of(checkpoint, 0, SaveHistory.NONE, fileBytes).files();
  }

  /// Saves a planned checkpoint.
  ///
  /// @param files the plan's files, or their snapshot
  synchronized SavedCheckpoint commit(SavePlan plan, List<NewFile> files, WriteOptions options) {
    if (closed) {
      throw new MisuseException("this checkpoint store is closed");
    }
    // The name is chosen now and not by the plan, since a save that was planned earlier may have
    // taken it
    // meanwhile.
    Path target = folder.vacant(plan.checkpoint().step(), plan.sequence());
    // Step 1 of the protocol.
    folder.make(target);
    SavedCheckpoint saved =
        Cleanup.orUndo(
            () -> {
              // Step 2 of the protocol.
              WriteReport report =
                  session.write(SavePlan.in(target, files), options.withChecksums(true));
              Manifest manifest = plan.manifest(report);
              CheckpointFolder stored = new CheckpointFolder(session, target, manifest.head());
              histories.warnOf(plan, lasts());
              add(stored);
              // Step 3 of the protocol.
              writeManifest(target, manifest, options);
              return new SavedCheckpoint(stored, report);
            },
            // A checkpoint whose manifest has its name is kept: it is complete, but may not be
            // durable.
            () -> folder.removeUnfinished(target));
    // Finds the checkpoint by its folder, since a save that was planned later may already be the
    // last one.
    checkpoints.stream().filter(one -> one.isAt(target)).findFirst().ifPresent(this::submit);
    // Step 4 of the protocol.
    removeSurplus();
    return saved;
  }

  /// Adds a checkpoint. It replaces a checkpoint that had the same folder, such as a save that
  /// failed after its manifest was written.
  private void add(CheckpointFolder checkpoint) {
    checkpoints.removeIf(one -> one.isAt(checkpoint.folder()));
    checkpoints.add(checkpoint);
    checkpoints.sort(Comparator.comparingLong(CheckpointFolder::sequence));
  }

  /// Notes that the training continues from a checkpoint, so that later saves continue its
  /// history.
  public void goOnFrom(CheckpointFolder restored) {
    position.updateAndGet(before -> new Position(before.sequence(), restored.head().history()));
  }

  private void writeManifest(Path checkpoint, Manifest manifest, WriteOptions options) {
    byte[] bytes = ManifestWriter.bytes(manifest);
    NewFile file =
        new NewFile(
            StoreFolder.manifest(checkpoint),
            List.of(new Memory.OnHost(MemorySegment.ofArray(bytes))));
    session.write(
        List.of(file),
        WriteOptions.defaults()
            .withThreads(1)
            .withRequestBytes(MANIFEST_REQUEST_BYTES)
            .withPageCache(options.pageCache())
            .withCancellation(options.cancellation()));
  }

  /// Removes the checkpoints that stayed only until they were in the other store.
  private synchronized void removeUploaded() {
    if (!closed) {
      removeSurplus();
    }
  }

  /// Removes the checkpoints that the retention does not keep. The new one is saved by now, so
  /// failures are only logged. If the manifest still exists, the next save tries again; otherwise
  /// the next opening of the folder does.
  private void removeSurplus() {
    removal.writeLock().lock();
    try {
      // Forgets failed saves, and checkpoints that were removed by hand.
      checkpoints.removeIf(one -> StoreFolder.hasNoManifest(one.folder()));
      List<TransferException> failures =
          StoreFolder.removeEach(
              retention.surplus(checkpoints),
              one -> {
                if (uploads == null || uploads.letGo(one)) {
                  folder.remove(one.folder());
                  checkpoints.remove(one);
                }
              });
      if (!failures.isEmpty()) {
        LOG.warn(
            "{}: old checkpoints could not be removed: {}",
            folder.root(),
            StoreFolder.words(failures));
      }
    } finally {
      removal.writeLock().unlock();
    }
  }

  /// Waits for the save and the uploads under way, and lets other savers open the folder.
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
    // This thread does not hold the lock, since each upload takes it at its end.
    try (lock;
        uploads) {}
  }

  /// Waits until all checkpoints that were saved are in the other store, if there is one.
  ///
  /// @throws dev.gantry.core.GantryException if a checkpoint could not be uploaded
  public void awaitUploads() {
    if (uploads != null) {
      uploads.await();
    }
  }

  /// Whether any checkpoint has only finite values.
  public boolean hasFinite() {
    return checkpoints.stream().anyMatch(CheckpointFolder::isFinite);
  }

  /// Whether the other store has a copy of a checkpoint that lies in the folder.
  public boolean hasCopy(Path checkpoint) {
    return copies.flatMap(there -> there.copyOf(checkpoint)).isPresent();
  }

  /// Whether the other store has a checkpoint that was saved before the given checkpoint of the
  /// folder.
  public boolean hasEarlier(Path checkpoint) {
    return copies.filter(there -> there.hasEarlier(checkpoint)).isPresent();
  }

  /// Replaces a damaged checkpoint by its copy from the other store. The damaged one is removed once the
  /// copy is on the disk and its checksums are right.
  ///
  /// @param damaged the folder of a damaged checkpoint that [#hasCopy]
  /// @throws MalformedFileException if the copy is damaged as well
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

  /// Copies the checkpoint that was saved last from the other store, unless the folder has this
  /// checkpoint or a later one.
  ///
  /// @param fallBack whether to log a warning and take the checkpoint before it if the copy is
  ///     damaged
  /// @throws MalformedFileException if the copy is damaged; with `fallBack`, if all copies are, and the
  ///     folder has no checkpoint
  /// @throws TransferException if the other store or the disk fails
  public synchronized void fetchLatest(boolean fallBack) {
    copies.flatMap(there -> there.fetchBefore(Long.MAX_VALUE, fallBack)).ifPresent(this::add);
  }

  /// Fetches a checkpoint as [#fetchLatest] does, but only one that was saved before a damaged
  /// checkpoint that has no copy.
  public synchronized void fetchBefore(Path damaged) {
    checkpoints.stream()
        .filter(one -> one.isAt(damaged))
        .findFirst()
        .flatMap(one -> copies.flatMap(there -> there.fetchBefore(one.sequence(), true)))
        .ifPresent(this::add);
  }

  /// Fetches the copy of a step's checkpoint, unless the folder has a checkpoint of this step;
  /// throws as [#fetchLatest] does.
  public synchronized void fetch(long step) {
    copies.flatMap(there -> there.fetchStep(step)).ifPresent(this::add);
  }
}
