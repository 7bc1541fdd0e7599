// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.djl.internal.ndarray.ArrayVersions;
import dev.gantry.djl.internal.training.TrainerParts;
import dev.gantry.djl.internal.training.TrainingContents;
import dev.gantry.djl.internal.training.TrainingMoment;
import dev.gantry.djl.internal.training.UpdateFence;
import dev.gantry.djl.internal.training.UserStates;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.SaveQueue;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The saves of one [CheckpointSaver]: the arrays of each, and the thread that writes them. For the thread
/// that steps the trainer.
final class Saves {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointSaver.class);

  private final Path path;
  private final CheckpointStore store;
  private final Optional<SaveQueue> queue;
  private final Optional<SaveMode> chosen;
  private final WriteOptions options;
  private final Optional<Retention.Best> keepBest;
  private final UserStates userStates;
  private final Optional<ParameterNames> dcp;
  private WeakReference<Model> saved = new WeakReference<>(null);
  private boolean finite;
  // The last save of only finite values that another thread wrote: until it completes, the store
  // does not
  // count it.
  private CompletableFuture<?> finiteSave = CompletableFuture.completedFuture("none");
  private boolean warned;

  /// @param userStates saved with a trainer
  Saves(CheckpointSaver.Builder builder, Path path, CheckpointStore store, UserStates userStates) {
    this.path = path;
    this.store = store;
    this.chosen = Optional.ofNullable(builder.mode);
    this.options = builder.options;
    this.keepBest = Optional.ofNullable(builder.keepBest);
    this.userStates = userStates;
    this.dcp = Optional.ofNullable(builder.dcp);
    this.queue =
        chosen.equals(Optional.of(SaveMode.SYNC))
            ? Optional.empty()
            : Optional.of(
                new SaveQueue(
                    store,
                    limits(chosen, builder.snapshots, HostMemory.availableBytes()),
                    builder.busyPolicy,
                    options,
                    builder.copier.get()));
  }

  /// The most memory that snapshots may take. A user who has chosen neither the mode nor the memory may not
  /// expect that a saver takes most of it.
  ///
  /// @param available the bytes of host memory that are available now, if the kernel tells
  static SnapshotLimits limits(
      Optional<SaveMode> chosen, SnapshotLimits given, OptionalLong available) {
    return chosen.isEmpty() && given.equals(SnapshotLimits.DEFAULT) && available.isPresent()
        ? new SnapshotLimits(0, available.getAsLong() / 2)
        : given;
  }

  /// Writes asynchronous saves; empty if [SaveMode#SYNC] was chosen.
  Optional<SaveQueue> queue() {
    return queue;
  }

  /// The mode of a save that the user calls.
  SaveMode modeOfUser() {
    return chosen.orElse(SaveMode.SYNC);
  }

  /// The mode of a save by a [CheckpointListener].
  SaveMode modeOfListener() {
    return chosen.orElse(SaveMode.ASYNC);
  }

  /// Warns once only: a training may measure the metric from time to time.
  void warnOfMissingMetric(SaveRequest request) {
    Set<String> metrics = request.metrics().keySet();
    if (!warned && keepBest.isPresent() && !metrics.contains(keepBest.get().metric())) {
      warned = true;
      LOG.warn(
          "optKeepBest is \"{}\", and step {} is saved without this metric: it has {}",
          keepBest.get().metric(),
          request.step(),
          metrics.isEmpty() ? "none" : String.join(", ", metrics));
    }
  }

  private void warnOfNan(SaveRequest request) {
    keepBest
        .map(best -> request.metrics().get(best.metric()))
        .filter(value -> value.isNaN())
        .ifPresent(value ->
            LOG.warn(
                "optKeepBest is \"{}\", which is NaN at step {}: this checkpoint is not among the"
                    + " best",
                keepBest.map(Retention.Best::metric).orElse(""),
                request.step()));
  }

  /// Refuses another model: the checkpoints of two models in one folder would replace each other.
  private void requireSameModel(SaveRequest request) {
    Model before = saved.get();
    Model now = request.model();
    if (before != null
        && !before.getBlock().equals(now.getBlock())
        && before.getNDManager().isOpen()) {
      throw new MisuseException(
          ("step %s is of another model than this saver has saved: use a saver for each "
                  + "model, with a folder of its own (setPath is %s)")
              .formatted(request.step(), path));
    }
  }

  CompletableFuture<SaveOutcome> save(
      SaveRequest request, Optional<TrainingMoment> moment, SaveMode mode) {
    requireSameModel(request);
    warnOfNan(request);
    CompletableFuture<SaveOutcome> outcome = begin(request, moment, mode);
    if (finite && !outcome.isDone()) {
      finiteSave = outcome;
    }
    saved = new WeakReference<>(request.model());
    return outcome;
  }

  private CompletableFuture<SaveOutcome> begin(
      SaveRequest request, Optional<TrainingMoment> moment, SaveMode mode) {
    if (queue.isEmpty() || mode == SaveMode.SYNC) {
      queue.ifPresent(SaveQueue::await);
      try (Unsaved unsaved = unsaved(request, moment)) {
        return CompletableFuture.completedFuture(
            store.save(unsaved.checkpoint(), options).outcome());
      }
    }
    if (mode == SaveMode.OVERLAPPED && request.trainer().isPresent()) {
      return saveOverlapped(queue.get(), request, request.trainer().get(), moment);
    }
    try (Unsaved unsaved = unsaved(request, moment)) {
      return queue.get().submit(unsaved.checkpoint());
    }
  }

  private CompletableFuture<SaveOutcome> saveOverlapped(
      SaveQueue saves, SaveRequest request, Trainer trainer, Optional<TrainingMoment> moment) {
    UpdateFence fence = TrainerParts.of(trainer).fence();
    Unsaved unsaved;
    if (moment.isPresent()) {
      unsaved = unsaved(request, moment);
    } else {
      // Copies first what the next forward pass changes while the rest is being copied.
      try (TrainingMoment now = TrainingMoment.copy(trainer, userStates)) {
        unsaved = unsaved(request, Optional.of(now));
      }
    }
    Optional<ArrayVersions> versions =
        Cleanup.orUndo(() -> ArrayVersions.of(unsaved.parameters()), unsaved::close);
    Runnable over =
        () -> {
          try (unsaved) {
            versions.ifPresent(ArrayVersions::close);
          }
        };
    SaveQueue.Overlapped save =
        Cleanup.orUndo(
            () ->
                saves.submitOverlapped(
                    unsaved.checkpoint(), () -> requireWhole(request.step(), versions), over),
            over);
    fence.hold(save.copied());
    return save.saved();
  }

  /// Checks that no parameter has changed since its version was noted.
  ///
  /// @param versions empty if they are not told
  private static void requireWhole(long step, Optional<ArrayVersions> versions) {
    versions
        .flatMap(ArrayVersions::changed)
        .ifPresent(path -> {
          throw new MisuseException(
              ("'%s' was changed otherwise than by Trainer.step() while the checkpoint of step %s"
                      + " was being copied: call awaitSnapshot() before such a change, or choose"
                      + " optMode(SaveMode.ASYNC)")
                  .formatted(path, step));
        });
  }

  /// A checkpoint and the arrays that it holds, whose memory stays until this is closed.
  ///
  /// @param parameters by their paths
  private record Unsaved(
      UnsavedCheckpoint checkpoint, Map<String, NDArray> parameters, List<ArraySources> sources)
      implements AutoCloseable {
    @Override
    public void close() {
      Cleanup.forEach(sources, ArraySources::close);
    }
  }

  private Unsaved unsaved(SaveRequest request, Optional<TrainingMoment> moment) {
    TrainingContents contents = contents(request, moment);
    Optional<String> broken = contents.parameterNotFinite();
    broken.ifPresent(name ->
        LOG.warn(
            "STEP {} HAS VALUES THAT ARE NaN OR INFINITE, in '{}' for one. {}",
            request.step(),
            name,
            !finiteSave.isDone() || store.hasFinite()
                ? "The last checkpoint without such values stays, too"
                : "There is no checkpoint without such values"));
    finite = broken.isEmpty();
    return unsaved(contents, request, broken.isEmpty());
  }

  private Unsaved unsaved(TrainingContents contents, SaveRequest request, boolean finite) {
    List<ArraySources> sources = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
          contents
              .groups()
              .forEach((group, arrays) -> {
                ArraySources added = ArraySources.of(arrays);
                sources.add(added);
                groups.put(group, added.tensors());
              });
          List<NewFile> others = new ArrayList<>();
          dcp.ifPresent(names -> {
            DcpTraining training = dcp(contents, request, names);
            sources.add(training.sources());
            others.addAll(training.folder().files());
          });
          return new Unsaved(
              new UnsavedCheckpoint(
                  request.step(),
                  groups,
                  others,
                  contents.state(),
                  request.metrics(),
                  request.metadata(),
                  finite),
              contents.groups().getOrDefault(TrainingContents.MODEL, new LinkedHashMap<>()),
              sources);
        },
        () -> Cleanup.forEach(sources, ArraySources::close));
  }

  private static DcpTraining dcp(
      TrainingContents contents, SaveRequest request, ParameterNames names) {
    SequencedMap<String, NDArray> none = new LinkedHashMap<>();
    return DcpTraining.of(
        request,
        names,
        contents.groups().getOrDefault(TrainingContents.MODEL, none),
        contents.groups().getOrDefault(TrainingContents.OPTIMIZER, none),
        Path.of(""));
  }

  private TrainingContents contents(SaveRequest request, Optional<TrainingMoment> moment) {
    Model model = request.model();
    long epoch = request.epoch();
    Optional<String> dataset = request.datasetState();
    return request
        .trainer()
        .map(trainer -> TrainingContents.of(model, trainer, epoch, dataset, moment, userStates))
        .orElseGet(() -> TrainingContents.of(model, epoch, dataset));
  }

  /// Does what [CheckpointSaver#prepare] says, for saves of a mode.
  CompletableFuture<Void> prepare(Model model, Trainer trainer, SaveMode mode) {
    if (queue.isEmpty() || mode == SaveMode.SYNC) {
      return CompletableFuture.completedFuture(null);
    }
    TrainingContents contents = TrainingContents.expected(model, trainer);
    SaveRequest request =
        SaveRequest.builder().setStep(0).setModel(model).optTrainer(trainer).build();
    try (Unsaved unsaved = unsaved(contents, request, true)) {
      return queue.get().prepare(unsaved.checkpoint());
    }
  }
}
