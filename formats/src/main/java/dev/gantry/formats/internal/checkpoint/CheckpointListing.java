// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The checkpoints that a folder held at one moment. Immutable.
///
/// @param saves the complete checkpoints in the order of their saves, including those that a later
///     save of the same step replaces
/// @param broken the checkpoints whose manifest cannot be used
/// @param unfinished the names of folders without a manifest, whose save is under way or was
///     interrupted
public record CheckpointListing(
    List<CheckpointFolder> saves, List<Damaged> broken, List<String> unfinished) {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointStore.class);

  /// @param reason what is wrong with the manifest
  /// @param step the step in the folder's name; empty if it does not fit a `long`
  /// @param sequence the save's number, if the manifest can still tell
  record Damaged(MalformedFileException reason, OptionalLong step, OptionalLong sequence) {
    /// Makes the entry of a damaged manifest whose step is known only from the folder's name.
    static Damaged of(MalformedFileException reason) {
      OptionalLong step = StoreFolder.step(CheckpointFolder.folderName(reason.file()));
      return new Damaged(reason, step, OptionalLong.empty());
    }

    /// Whether the damaged checkpoint was saved before a complete one; false if it may have been
    /// saved later.
    boolean isOlderThan(CheckpointFolder other) {
      if (sequence.isPresent()) {
        return sequence.getAsLong() < other.sequence();
      }
      return step.isPresent() && step.getAsLong() < other.step();
    }
  }

  public CheckpointListing {
    saves = List.copyOf(saves);
    broken = List.copyOf(broken);
    unfinished = List.copyOf(unfinished);
  }

  /// Finds the checkpoints that the folder holds at one moment, while a saver may be at work.
  ///
  /// @throws TransferException if a manifest cannot be read; it may be intact, so it does not count as
  ///     damaged
  static CheckpointListing of(StoreFolder folder) {
    return settled(folder::look, found -> read(folder.session(), found.keySet()));
  }

  /// Reads the contents that a folder had at one moment.
  ///
  /// One look at the folder does not suffice: during the look, a saver may finish a checkpoint
  /// that the look has missed and remove the checkpoint before, so that the look finds neither.
  /// Therefore this looks until two successive looks are equal: everything that both found existed
  /// between the two looks.
  ///
  /// @param read may throw that a file was not found, if it was removed after the look
  static <L, R> R settled(Supplier<L> look, Function<L, R> read) {
    L before = look.get();
    while (true) {
      R found = null;
      TransferException gone = null;
      try {
        found = read.apply(before);
      } catch (TransferException e) {
        if (!e.isNotFound()) {
          throw e;
        }
        gone = e;
      }
      L after = look.get();
      if (after.equals(before)) {
        if (gone != null) {
          throw gone;
        }
        return Objects.requireNonNull(found);
      }
      before = after;
    }
  }

  private static CheckpointListing read(GantrySession session, Set<Path> folders) {
    List<CheckpointFolder> found = new ArrayList<>();
    List<Damaged> damaged = new ArrayList<>();
    List<String> unfinished = new ArrayList<>();
    for (Path checkpoint : folders) {
      Path manifest = StoreFolder.manifest(checkpoint);
      try {
        found.add(new CheckpointFolder(session, checkpoint, Manifest.readHead(session, manifest)));
      } catch (MalformedFileException e) {
        damaged.add(damaged(session, checkpoint, e));
      } catch (TransferException e) {
        if (e.isErrno(Set.of("EISDIR"))) {
          MalformedFileException reason =
              new MalformedFileException(
                  manifest, 0, "not-a-regular-file", "the manifest is a folder");
          damaged.add(Damaged.of(reason));
        } else if (e.isNotFound()) {
          unfinished.add(checkpoint.getFileName().toString());
        } else {
          throw e;
        }
      }
    }
    found.sort(Comparator.comparingLong(CheckpointFolder::sequence));
    return new CheckpointListing(found, damaged, unfinished);
  }

  private static Damaged damaged(
      GantrySession session, Path checkpoint, MalformedFileException reason) {
    OptionalLong step = StoreFolder.step(checkpoint);
    OptionalLong sequence =
        step.isEmpty()
            ? OptionalLong.empty()
            : Manifest.sequence(session, StoreFolder.manifest(checkpoint), step.getAsLong());
    return new Damaged(reason, step, sequence);
  }

  /// The highest known number of any save; 0 if there was none.
  long lastSequence() {
    return LongStream.concat(
            saves.stream().mapToLong(CheckpointFolder::sequence),
            broken.stream().flatMapToLong(one -> one.sequence().stream()))
        .max()
        .orElse(0);
  }

  /// The complete checkpoints in the order of their saves; only the last one of each step.
  public List<CheckpointFolder> checkpoints() {
    SequencedMap<Long, CheckpointFolder> bySteps = new LinkedHashMap<>();
    // A step that was saved several times is listed at the position of its last save.
    saves.forEach(one -> bySteps.putLast(one.step(), one));
    return List.copyOf(bySteps.values());
  }

  /// An error for each checkpoint whose manifest cannot be used.
  public List<MalformedFileException> damaged() {
    return broken.stream().map(Damaged::reason).toList();
  }

  /// The errors of damaged checkpoints that may be newer than all complete ones, as far as their folders' names
  /// and the rest of their manifests tell.
  public List<MalformedFileException> doubtful() {
    return broken.stream()
        .filter(one -> saves.isEmpty() || !one.isOlderThan(saves.getLast()))
        .map(Damaged::reason)
        .toList();
  }

  /// Returns the checkpoint that was saved last, or empty if there is none.
  ///
  /// @throws MalformedFileException if a damaged checkpoint may have been saved later
  public Optional<CheckpointFolder> latest() {
    if (!doubtful().isEmpty()) {
      throw doubtful().getFirst();
    }
    return latestWhole();
  }

  /// Logs a warning for each damaged checkpoint, for callers that ignore damaged checkpoints.
  public CheckpointListing warned() {
    damaged().forEach(one -> LOG.warn("DAMAGED CHECKPOINT, left out: {}", one.getMessage()));
    return this;
  }

  /// Returns the undamaged checkpoint that was saved last.
  public Optional<CheckpointFolder> latestWhole() {
    return saves.reversed().stream().findFirst();
  }

  public Optional<CheckpointFolder> ofStep(long step) {
    return checkpoints().stream().filter(one -> one.step() == step).findFirst();
  }

  /// Returns advice for the end of an error's reason, where a folder was taken for weights: it names one of the
  /// folder's checkpoints. Empty if the folder has none.
  public static String advice(GantrySession session, Location folder) {
    return folder instanceof Location.Local(Path path, _)
        ? CheckpointStore.list(session, path)
            .latestWhole()
            .map(latest ->
                "; it has checkpoints; name one, such as " + latest.folder().getFileName())
            .orElse("")
        : "";
  }
}
