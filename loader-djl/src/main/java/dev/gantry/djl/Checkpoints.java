// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.training.Trainer;
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
import java.util.Map;
import java.util.Optional;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Function;

/// Reads the checkpoints that a [CheckpointSaver] saved into a folder. A training may have the
/// folder open and save meanwhile. If it removes an old checkpoint before that checkpoint is
/// loaded, the load fails with ENOENT; open the latest checkpoint again then. No file is held open
/// between calls. Immutable.
///
/// [#saveDcp] and [#restoreDcp] exchange trainings with PyTorch.
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

  /// Reads the checkpoints of a folder, which may be a folder of another store to which
  /// `optRemote` of a [CheckpointSaver] copies them, such as `s3://bucket/run-7`. Loads from
  /// another store compare the checksum of each tensor, as with [LoadOptions.Builder#optVerify].
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

  /// Lists all checkpoints of a local folder, in the order in which they were saved. If a step was
  /// saved several times, only the last of its checkpoints is listed. Checkpoints with a damaged
  /// manifest are left out, and a warning is logged.
  ///
  /// @throws MisuseException if the folder is not local
  /// @throws dev.gantry.core.TransferException if the folder or a manifest cannot be read
  public List<StoredCheckpoint> list() {
    return List.copyOf(CheckpointStore.list(session, local()).warned().checkpoints());
  }

  /// Opens the model of the checkpoint that was saved last. Its tensors have the parameters' own names
  /// ([ParameterNames#same]).
  ///
  /// @return empty if the folder has no checkpoint yet
  /// @throws dev.gantry.core.MalformedFileException if the checkpoint is damaged
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

  /// Opens the model of the best checkpoint of a local folder, by a metric that was saved with it;
  /// otherwise as [#openLatest]. Checkpoints with a damaged manifest are left out, and a warning
  /// is logged.
  ///
  /// @return empty if the folder has no checkpoint yet, no checkpoint has metrics, or the metric
  ///     is NaN in all of them
  /// @throws MisuseException if checkpoints have metrics, but none has `metric`
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

  /// Saves a training as a folder of `torch.distributed.checkpoint` (DCP), from which PyTorch continues it. The tensors have
  /// the names of PyTorch's `get_state_dict`, under `model` and `optimizer`: rules give the names of the model's tensors,
  /// such as `fc.weight` for the parameter `01Linear_weight`. Step, epoch, metrics and notes become values `step`, `epoch`,
  /// `metrics.NAME` and `notes.NAME`. Optimizers are DJL's Adam and AdamW, whose state is that of PyTorch's, and Sgd
  /// without momentum, which has none.
  ///
  /// This returns when the folder is on the disk. A crash before leaves a folder that readers
  /// recognise as incomplete.
  ///
  /// @param request the training; without a trainer, the model is saved without its optimizer
  /// @param folder a folder without files of this format; it is made if it does not exist
  /// @throws MisuseException if the folder has such files, a parameter has no array or no rule, two tensors would
  ///     have one name, or PyTorch's optimizer of this kind keeps another state
  /// @throws dev.gantry.core.TransferException if a file or device fails; the folder is unchanged
  ///     then
  public static void saveDcp(SaveRequest request, ParameterNames names, Path folder) {
    MisuseException.requireGiven("request", request);
    MisuseException.requireGiven("names", names);
    MisuseException.requireGiven("folder", folder);
    DcpTraining.save(request, names, folder);
  }

  /// Sets the trainer's model and optimizer to the state that PyTorch saved with `get_state_dict`,
  /// on any number of ranks. In the folder, the model and the optimizer may have other names than
  /// `model` and `optimizer`. All tensors are loaded to the host's memory before anything changes.
  ///
  /// @param folder the folder, with its `.metadata` file
  /// @param trainer that has been initialised
  /// @return the folder's values that are not tensors, such as an epoch, by their names
  /// @throws dev.gantry.core.MalformedFileException if the folder is damaged
  /// @throws MisuseException if tensors and parameters do not fit each other by the rules, or PyTorch's optimizer
  ///     of this kind keeps another state
  /// @throws dev.gantry.core.TransferException if a file or device fails
  public static Map<String, String> restoreDcp(Path folder, Trainer trainer, ParameterNames names) {
    MisuseException.requireGiven("folder", folder);
    MisuseException.requireGiven("trainer", trainer);
    MisuseException.requireGiven("names", names);
    return DcpTraining.restore(folder, trainer, names);
  }

  private Path local() {
    if (folder instanceof Location.Local(Path path, _)) {
      return path;
    }
    throw new MisuseException("the folder must be a local one (was " + folder + ")");
  }
}
