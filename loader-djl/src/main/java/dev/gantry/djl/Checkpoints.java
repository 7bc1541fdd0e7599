// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.TrainingContents;
import dev.gantry.djl.internal.weights.OpenWeights;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.SavedGroup;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Function;

/// Reads the checkpoints that a [CheckpointSaver] saved into a folder. A training may have the folder open
/// and save meanwhile. If it removes an old checkpoint before that is loaded, the load fails with ENOENT:
/// open the latest anew. Nothing is held open between calls. Immutable.
public final class Checkpoints {
  private final Location folder;
  private final GantrySession session;

  private Checkpoints(Location folder, Session session) {
    this.folder = folder;
    this.session = GantrySession.of(MisuseException.requireGiven("session", session));
  }

  /// Reads a folder's checkpoints with the process's shared session.
  public static Checkpoints at(Path folder) {
    return at(folder, GantrySession.shared());
  }

  /// Reads the checkpoints of a folder, which may be in another store: where `optRemote` of a
  /// [CheckpointSaver] copies them to, such as `s3://bucket/run-7`. Loads from there compare the checksum of
  /// each tensor, as with [LoadOptions.Builder#optVerify].
  ///
  /// @param folder a path or a URI
  public static Checkpoints at(String folder) {
    return at(folder, GantrySession.shared());
  }

  /// Reads a folder's checkpoints with a session of yours, which must stay open for as long as weights are
  /// loaded.
  public static Checkpoints at(Path folder, Session session) {
    return new Checkpoints(Location.of(MisuseException.requireGiven("folder", folder)), session);
  }

  /// Does what [#at(String)] does, with a session of yours, which must stay open for as long as weights are
  /// loaded.
  public static Checkpoints at(String folder, Session session) {
    return new Checkpoints(Location.of(MisuseException.requireGiven("folder", folder)), session);
  }

  /// Lists all checkpoints of a local folder, in the order in which they were saved; of one step, only the
  /// last. Checkpoints with a damaged manifest are left out, and the log warns of them.
  ///
  /// @throws MisuseException if the folder is not local
  /// @throws dev.gantry.core.TransferException if the folder or a manifest cannot be read
  public List<StoredCheckpoint> list() {
    return List.copyOf(CheckpointStore.list(session, local()).warned().checkpoints());
  }

  /// Opens the model of the checkpoint that was saved last. Its tensors have the parameters' own names
  /// ([ParameterNames#same]).
  ///
  /// @return empty if there is none yet
  /// @throws dev.gantry.core.MalformedFileException if it is damaged
  /// @throws dev.gantry.core.TransferException if a file cannot be opened or read
  public Optional<Weights> openLatest() {
    return switch (folder) {
      case Location.Local _ -> open(CheckpointListing::latest);
      case Location.Remote remote ->
          SavedGroup.latest(session, remote, TrainingContents.MODEL)
              .map(saved ->
                  new Weights(new OpenWeights(saved.tensors(), saved.sums(), true), session));
    };
  }

  /// Opens the model of the best checkpoint of a local folder, by a metric that was saved with it; otherwise
  /// as [#openLatest]. Checkpoints with a damaged manifest are left out, and the log warns of them.
  ///
  /// @return empty if there is none yet, none has metrics, or the metric of all is NaN
  /// @throws MisuseException if checkpoints have metrics, and none has this one
  public Optional<Weights> openBest(String metric, Retention.Goal goal) {
    MisuseException.requireGiven("metric", metric);
    MisuseException.requireGiven("goal", goal);
    Retention.Best best = new Retention.Best(metric, 1, goal);
    return open(listing -> {
      requireMetric(metric, listing.warned().checkpoints());
      return best.of(listing.checkpoints());
    });
  }

  private void requireMetric(String metric, List<CheckpointFolder> checkpoints) {
    SortedSet<String> metrics = new TreeSet<>();
    checkpoints.forEach(one -> metrics.addAll(one.metrics().keySet()));
    if (!metrics.isEmpty() && !metrics.contains(metric)) {
      throw new MisuseException(
          "metric is \"%s\", which no checkpoint in %s has: they have %s"
              .formatted(metric, local(), String.join(", ", metrics)));
    }
  }

  private Optional<Weights> open(Function<CheckpointListing, Optional<CheckpointFolder>> choice) {
    return SavedGroup.choose(session, local(), TrainingContents.MODEL, choice)
        .map(saved -> new Weights(new OpenWeights(saved.tensors(), saved.sums(), false), session));
  }

  private Path local() {
    if (folder instanceof Location.Local(Path path, _)) {
      return path;
    }
    throw new MisuseException("the folder must be a local one (was " + folder + ")");
  }
}
