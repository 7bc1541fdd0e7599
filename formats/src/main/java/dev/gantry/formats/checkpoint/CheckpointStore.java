package dev.gantry.formats.checkpoint;

import dev.gantry.core.Gantry;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.commit.NewFile;
import dev.gantry.core.commit.Source;
import dev.gantry.core.commit.WriteOptions;
import dev.gantry.core.commit.WriteReport;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A folder of checkpoints, `step-N` each, with room for one saver. A save goes by this protocol, so
/// that a crash at any point leaves the checkpoints before it, and the new one whole or not at all:
///
/// 1. make the checkpoint's folder, and synchronise the one it is in
/// 2. write all shards and indexes by the protocol for files (see [Gantry#write]): then all of them
///    are on the disk under their names
/// 3. write the manifest likewise: from then on the checkpoint exists
/// 4. remove what the retention does not want: of each checkpoint the manifest first
///
/// What is without a manifest was never finished; the next saver that opens the folder removes it.
/// Thread-safe; saves are made one after the other.
public final class CheckpointStore implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointStore.class);

  private final Gantry session;
  private final StoreFolder folder;
  private final StoreLock lock;
  private final Retention retention;
  private final long shardBytes;

  /// Shared by all who read checkpoints; removing them takes it whole.
  private final ReentrantReadWriteLock removal = new ReentrantReadWriteLock();

  private long lastSequence;

  private CheckpointStore(
      Gantry session, StoreFolder folder, StoreLock lock, Retention retention, long shardBytes) {
    this.session = session;
    this.folder = folder;
    this.lock = lock;
    this.retention = retention;
    this.shardBytes = shardBytes;
  }

  /// Opens a folder for saving, makes it where it is missing, and removes what saves that never
  /// ended have left there.
  ///
  /// @param session which must stay open for as long as this saves
  /// @param shardBytes the most bytes of tensors in one file; a larger tensor has a file to itself
  /// @throws MisuseException if another saver has the folder open
  /// @throws TransferException if a file operation fails
  public static CheckpointStore open(
      Gantry session, Path root, Retention retention, long shardBytes) {
    StoreFolder folder = new StoreFolder(root, session.folders());
    folder.create();
    StoreLock lock = StoreLock.take(root);
    boolean complete = false;
    try {
      folder.removeLeftovers();
      CheckpointStore store = new CheckpointStore(session, folder, lock, retention, shardBytes);
      store.lastSequence =
          scan(folder).checkpoints().stream()
              .mapToLong(one -> one.manifest().sequence())
              .max()
              .orElse(0);
      complete = true;
      return store;
    } finally {
      if (!complete) {
        lock.close();
      }
    }
  }

  /// What a folder of checkpoints holds.
  ///
  /// @param checkpoints in the order in which they were saved; of those of one step only the last
  /// @param damaged those whose manifest cannot be used, and why
  public record Listing(List<StoredCheckpoint> checkpoints, List<MalformedFileException> damaged) {
    public Listing {
      checkpoints = List.copyOf(checkpoints);
      damaged = List.copyOf(damaged);
    }

    /// The one that was saved last.
    public Optional<StoredCheckpoint> latest() {
      return checkpoints.isEmpty() ? Optional.empty() : Optional.of(checkpoints.getLast());
    }

    public Optional<StoredCheckpoint> ofStep(long step) {
      return checkpoints.stream().filter(one -> one.step() == step).findFirst();
    }
  }

  /// What is there now. Only manifests are read. Nobody need have the folder open for that, and
  /// a folder that is missing holds nothing.
  ///
  /// @throws TransferException if a file or folder cannot be read
  public static Listing list(Path root) {
    return listing(new StoreFolder(root, Gantry.shared().folders()));
  }

  private static Listing listing(StoreFolder folder) {
    Listing all = scan(folder);
    SequencedMap<Long, StoredCheckpoint> bySteps = new LinkedHashMap<>();
    // A step that was saved again is where the later save belongs.
    all.checkpoints().forEach(one -> bySteps.putLast(one.step(), one));
    return new Listing(List.copyOf(bySteps.values()), all.damaged());
  }

  /// All of them, those that were replaced by a later save of their step included.
  private static Listing scan(StoreFolder folder) {
    List<StoredCheckpoint> found = new ArrayList<>();
    List<MalformedFileException> damaged = new ArrayList<>();
    for (Path checkpoint : folder.checkpoints()) {
      Path manifest = StoreFolder.manifest(checkpoint);
      try {
        if (Files.exists(manifest)) {
          found.add(new StoredCheckpoint(checkpoint, Manifest.read(manifest)));
        }
      } catch (MalformedFileException e) {
        damaged.add(e);
      } catch (TransferException e) {
        // Unless its saver has removed it since it was seen.
        if (Files.exists(manifest)) {
          throw e;
        }
      }
    }
    found.sort(Comparator.comparingLong(one -> one.manifest().sequence()));
    return new Listing(found, damaged);
  }

  /// Does `work` while nothing is removed.
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
  public SavedCheckpoint save(UnsavedCheckpoint checkpoint, WriteOptions options) {
    SavePlan plan = plan(checkpoint);
    return commit(plan, plan.files(), options);
  }

  /// Where a checkpoint's bytes will go.
  SavePlan plan(UnsavedCheckpoint checkpoint) {
    long sequence = nextSequence();
    return SavePlan.of(
        checkpoint, sequence, folder.vacant(checkpoint.step(), sequence), shardBytes);
  }

  private synchronized long nextSequence() {
    lastSequence++;
    return lastSequence;
  }

  /// Saves what was planned.
  ///
  /// @param files the plan's files, or a snapshot of them
  synchronized SavedCheckpoint commit(SavePlan plan, List<NewFile> files, WriteOptions options) {
    StoredCheckpoint stored;
    WriteReport report;
    try {
      // 1
      session.folders().create(plan.folder());
      // 2
      report = session.write(files, options.withChecksums(true));
      stored = new StoredCheckpoint(plan.folder(), plan.manifest(report));
      // 3
      writeManifest(stored, options);
    } catch (RuntimeException | Error failure) {
      removeUnfinished(plan.folder(), failure);
      throw failure;
    }
    // 4
    removeSurplus();
    return new SavedCheckpoint(stored, report);
  }

  private void writeManifest(StoredCheckpoint stored, WriteOptions options) {
    byte[] bytes = ManifestWriter.bytes(stored.manifest());
    if (bytes.length > Manifest.MAX_BYTES) {
      throw new MisuseException(
          "a manifest of " + bytes.length + " bytes, more than " + Manifest.MAX_BYTES);
    }
    NewFile file =
        new NewFile(
            StoreFolder.manifest(stored.folder()),
            List.of(new Source.HostMemory(MemorySegment.ofArray(bytes))));
    session.write(
        List.of(file),
        WriteOptions.defaults()
            .withPageCache(options.pageCache())
            .withCancellation(options.cancellation()));
  }

  /// Unless the manifest has its name already: then all is there but the certainty.
  private void removeUnfinished(Path checkpoint, Throwable failure) {
    try {
      if (!Files.exists(StoreFolder.manifest(checkpoint))) {
        folder.remove(checkpoint);
      }
    } catch (TransferException besides) {
      failure.addSuppressed(besides);
    }
  }

  /// The new checkpoint is saved, so what fails here is told, and tried again with the next.
  private void removeSurplus() {
    removal.writeLock().lock();
    try {
      for (StoredCheckpoint one : retention.surplus(scan(folder).checkpoints())) {
        folder.remove(one.folder());
      }
    } catch (TransferException e) {
      LOG.warn("{}: old checkpoints could not be removed: {}", folder.root(), e.getMessage());
    } finally {
      removal.writeLock().unlock();
    }
  }

  /// Lets another saver have the folder.
  @Override
  public void close() {
    lock.close();
  }
}
