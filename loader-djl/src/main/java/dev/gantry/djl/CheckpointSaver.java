package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.training.Trainer;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.training.TrainingContents;
import dev.gantry.djl.internal.training.TrainingMoment;
import dev.gantry.djl.internal.training.UserStates;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.SaveQueue;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Saves a training into a folder of checkpoints, and brings it back from there, in this process or
/// another.
///
/// A checkpoint holds the model's parameters, the optimizer's state, the generators of random
/// numbers, step and epoch: a training that goes on from it makes the very steps that the first one
/// would have made, where its kernels give the same results each time. Gradients that wait for a
/// step are no part of it. A save that was reported is on the disk, whole; one that was not leaves
/// the checkpoints before it as they were, also where the process or the machine dies. The
/// parameters are ordinary safetensors files: [Weights] and others open a checkpoint's folder as
/// the model.
///
/// Parameters go by their paths, as `Block#getParameters` has them; one with several paths is saved
/// once. Served are DJL's Adam, AdamW, Sgd, Nag, RmsProp, Adagrad and Adadelta, and classes derived
/// from them that keep no state of their own: fields that may be state are refused.
///
/// One saver at a time, of all processes, has a folder open. Its methods are for one thread, that
/// which steps the trainer; an asynchronous save is written by another. After [#close] all calls
/// are refused with a [MisuseException].
public final class CheckpointSaver implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointSaver.class);

  private final GantrySession session;
  private final Path directory;
  private final CheckpointStore store;
  private final @Nullable SaveQueue queue;
  private final WriteOptions options;
  private final CheckpointChoice choice;
  private final Optional<Retention.Best> keepBest;
  private final UserStates userStates;
  private boolean warned;
  private boolean closed;

  private CheckpointSaver(Builder builder, Path directory) {
    this.session = Objects.requireNonNullElseGet(builder.session, GantrySession::shared);
    this.directory = directory;
    this.options = builder.options;
    this.keepBest = Optional.ofNullable(builder.keepBest);
    this.userStates = new UserStates(builder.userStates);
    this.choice =
        new CheckpointChoice(session, directory, builder.verify, builder.fallBack, userStates);
    this.store = CheckpointStore.open(session, directory, builder.retention(), builder.shardBytes);
    this.queue =
        builder.async ? new SaveQueue(store, builder.snapshots, builder.busyPolicy, options) : null;
  }

  public static Builder builder() {
    return new Builder();
  }

  /// Saves a model and its trainer's state, and no more.
  ///
  /// @param step how many steps the training has made; 0 or more
  /// @see #save(SaveRequest)
  public CompletableFuture<SaveOutcome> save(long step, Model model, Trainer trainer) {
    return save(SaveRequest.builder().setStep(step).setModel(model).optTrainer(trainer).build());
  }

  /// Saves a checkpoint. Without `optAsync`, when this returns it is on the disk. With it, when
  /// this returns the tensors may change, and the future tells when it is; what goes wrong then is
  /// also thrown, once, by the next call that saves, restores, waits or closes.
  ///
  /// @return what becomes of the save; without `optAsync`, it is known already
  /// @throws TransferException if a file or device fails, or an earlier save failed
  /// @throws MisuseException if the trainer is of another model, a parameter is not initialised,
  ///     its type has no name here, or the optimizer is none of those that can be saved
  public CompletableFuture<SaveOutcome> save(SaveRequest request) {
    MisuseException.requireGiven("request", request);
    warnOfMissingMetric(request);
    return save(request, Optional.empty());
  }

  /// Once: a training may measure it now and then only.
  private void warnOfMissingMetric(SaveRequest request) {
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

  CompletableFuture<SaveOutcome> save(SaveRequest request, Optional<TrainingMoment> moment) {
    requireOpen();
    TrainingContents contents = contents(request, moment);
    List<ArraySources> sources = new ArrayList<>();
    try {
      SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
      contents
          .groups()
          .forEach((group, arrays) -> {
            ArraySources added = ArraySources.of(arrays);
            sources.add(added);
            groups.put(group, added.tensors());
          });
      UnsavedCheckpoint checkpoint =
          new UnsavedCheckpoint(
              request.step(), groups, contents.state(), request.metrics(), request.metadata());
      return queue != null
          ? queue.submit(checkpoint)
          : CompletableFuture.completedFuture(store.save(checkpoint, options).outcome());
    } finally {
      sources.forEach(ArraySources::close);
    }
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

  /// What the step to come leaves as it is now, for a save when it was made. The caller closes it.
  TrainingMoment moment(Trainer trainer) {
    return TrainingMoment.copy(trainer, userStates);
  }

  /// Waits until all saves are on the disk.
  ///
  /// @throws TransferException if one failed and no call has said so yet
  public void await() {
    requireOpen();
    if (queue != null) {
      queue.await();
    }
  }

  /// All checkpoints that are on the disk, in the order in which they were saved; of one step only
  /// the last. Those whose manifest is damaged are left out.
  ///
  /// @throws TransferException if the folder or a manifest cannot be read
  public List<StoredCheckpoint> list() {
    requireOpen();
    return List.copyOf(CheckpointStore.list(directory).checkpoints());
  }

  /// The last of [#list].
  ///
  /// @throws TransferException if the folder or a manifest cannot be read
  public Optional<StoredCheckpoint> latest() {
    requireOpen();
    return CheckpointStore.list(directory).latest().map(checkpoint -> checkpoint);
  }

  /// That of [#list] which `optKeepBest` finds best, or empty where none has its metric.
  ///
  /// @throws MisuseException if this was built without `optKeepBest`
  /// @throws TransferException if the folder or a manifest cannot be read
  public Optional<StoredCheckpoint> best() {
    Retention.Best best =
        keepBest.orElseThrow(() ->
            new MisuseException("optKeepBest is not set; it says which checkpoint is the best"));
    return best.of(list());
  }

  /// Goes on from the checkpoint that was saved last, or changes nothing where there is none.
  ///
  /// Where it is damaged, and `optFallBack` allows that, from the last one before it that is not. One
  /// whose manifest is damaged counts as the latest, unless its folder's name or what is left of the
  /// manifest says that another was saved after it.
  ///
  /// @param trainer that has been initialised, or null: see [#restore(long, Model, Trainer)]
  /// @throws MalformedFileException if the checkpoint is damaged; names the file, and the tensor if
  ///     one is. With `optFallBack`, if all are. Nothing has changed then
  /// @throws MisuseException if it is of another model or optimizer, or was saved without a trainer
  ///     and is restored with one. Nothing has changed then
  /// @throws TransferException if a file or device fails, or an earlier save failed
  public Optional<RestoredTraining> restoreLatest(Model model, @Nullable Trainer trainer) {
    MisuseException.requireGiven("model", model);
    await();
    return store.reading(() -> choice.latest(model, trainer));
  }

  /// Goes on from the checkpoint of a step. What it holds is compared with what is there before
  /// anything changes, and its checksums too if they are; then it is loaded part by part into the
  /// arrays that are there, which takes no more memory on the trainer's device than a part does
  /// (512 MiB; a single row that is larger). A failure between two parts says that the training's
  /// values are mixed: restore again before it goes on.
  ///
  /// A generator of random numbers that was not saved, such as that of another device, stays as it
  /// is.
  ///
  /// @param trainer that has been initialised; or null to restore the model's parameters only. Then
  ///     a parameter without an array gets the loaded one, and an initialised one keeps its array,
  ///     into which the values are copied, cast where both types are floating-point
  /// @throws MisuseException if there is none of that step, it is of another model or optimizer, or
  ///     it was saved without a trainer and is restored with one. Nothing has changed then
  /// @throws MalformedFileException if it is damaged; names the file, and the tensor if one is.
  ///     Nothing has changed then
  /// @throws TransferException if a file or device fails, or an earlier save failed
  public RestoredTraining restore(long step, Model model, @Nullable Trainer trainer) {
    MisuseException.requireGiven("model", model);
    await();
    return store.reading(() -> choice.ofStep(step, model, trainer));
  }

  /// The metric of `optKeepBest`, if that was chosen.
  Optional<String> keepBestMetric() {
    return keepBest.map(Retention.Best::metric);
  }

  private void requireOpen() {
    if (closed) {
      throw new MisuseException("this checkpoint saver is closed");
    }
  }

  /// Waits until all saves are on the disk, and lets another saver have the folder, also where this
  /// throws. Idempotent.
  ///
  /// @throws TransferException if a save failed and no call has said so yet
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      if (queue != null) {
        queue.close();
      }
    } finally {
      store.close();
    }
  }

  /// Makes [CheckpointSaver]s. For one thread.
  public static final class Builder {
    private static final long DEFAULT_SHARD_BYTES = 5_000_000_000L;

    private @Nullable Path directory;
    private @Nullable GantrySession session;
    private int keepLast;
    private long keepEvery;
    private Retention.@Nullable Best keepBest;
    private long shardBytes = DEFAULT_SHARD_BYTES;
    private boolean async;
    private BusyPolicy busyPolicy = BusyPolicy.WAIT;
    private SnapshotLimits snapshots = SnapshotLimits.DEFAULT;
    private WriteOptions options = WriteOptions.defaults();
    private boolean verify = true;
    private boolean fallBack;
    private final SequencedMap<String, UserStates.Access> userStates = new LinkedHashMap<>();

    private Builder() {}

    /// The folder of checkpoints; it is made where it is missing.
    public Builder setDirectory(Path chosen) {
      MisuseException.requireGiven("setDirectory", chosen);
      directory = chosen;
      return this;
    }

    /// The session that moves the bytes, which must stay open for as long as the saver; else the
    /// process's shared one.
    public Builder optSession(GantrySession chosen) {
      MisuseException.requireGiven("optSession", chosen);
      session = chosen;
      return this;
    }

    /// How many of the checkpoints saved last stay, besides those that other rules want. Unless
    /// something is said about what stays, all of them do; the last one always does.
    public Builder optKeepLast(int count) {
      MisuseException.requireRange("optKeepLast", count, 0, Integer.MAX_VALUE);
      keepLast = count;
      return this;
    }

    /// The checkpoints of steps that are multiples of `steps` stay.
    public Builder optKeepEvery(long steps) {
      MisuseException.requireRange("optKeepEvery", steps, 0, Long.MAX_VALUE);
      keepEvery = steps;
      return this;
    }

    /// The best `count` checkpoints by a metric that is saved with them stay; of equals, those that
    /// were saved first. One without the metric is never among them. A [CheckpointListener] saves
    /// the figures of DJL's evaluators, such as `validate_loss` and `validate_Accuracy`.
    public Builder optKeepBest(String metric, int count, Retention.Goal goal) {
      MisuseException.requireRange("count of optKeepBest", count, 1, Integer.MAX_VALUE);
      MisuseException.requireGiven("metric of optKeepBest", metric);
      MisuseException.requireGiven("goal of optKeepBest", goal);
      keepBest = new Retention.Best(metric, count, goal);
      return this;
    }

    /// The most bytes of tensors in one file, else 5 GB; a larger tensor has a file to itself.
    public Builder optShardBytes(long bytes) {
      MisuseException.requireRange("optShardBytes", bytes, 1, Long.MAX_VALUE);
      shardBytes = bytes;
      return this;
    }

    /// Whether a save returns when a snapshot is taken, and writes it behind; else when it is on
    /// the disk.
    public Builder optAsync(boolean chosen) {
      async = chosen;
      return this;
    }

    /// What becomes of a save while another is being written; else it waits.
    public Builder optBusyPolicy(BusyPolicy chosen) {
      MisuseException.requireGiven("optBusyPolicy", chosen);
      busyPolicy = chosen;
      return this;
    }

    /// How much memory snapshots may take; else as much of the CPU's as there is, and none of a
    /// GPU's. A save whose snapshot finds no room is waited for.
    public Builder optSnapshots(SnapshotLimits limits) {
      MisuseException.requireGiven("optSnapshots", limits);
      snapshots = limits;
      return this;
    }

    /// How files are written. Checksums are always taken. A path that is asked for here is that of
    /// device memory: with `optAsync`, of snapshots that lie on a device. A cancellation ends the
    /// save under way and each one after it.
    public Builder optWriteOptions(WriteOptions chosen) {
      MisuseException.requireGiven("optWriteOptions", chosen);
      options = chosen;
      return this;
    }

    /// Whether a restore compares the checksum of each tensor; it does unless that is switched off.
    /// Sizes and those of headers and manifests are always compared.
    public Builder optVerify(boolean chosen) {
      verify = chosen;
      return this;
    }

    /// Whether a restore of the latest checkpoint goes on to the one before where it is damaged,
    /// and logs a warning; else that is an error.
    public Builder optFallBack(boolean chosen) {
      fallBack = chosen;
      return this;
    }

    /// A state of your own that the training needs besides, such as how many numbers a transform of
    /// the dataset has drawn from a `java.util.Random`: it is saved with each training, and given
    /// back when a training is restored. Without a trainer neither is done. A state that was not
    /// saved stays as it is, and the log says so.
    ///
    /// Both are called by the thread that saves and restores. A [CheckpointListener] saves the state
    /// as it was when the step's batch had come, before the next one was asked for.
    ///
    /// @param name by which it is saved
    /// @param save gives the state as a text; what it throws is thrown by the save
    /// @param restore takes it; what it throws is thrown by the restore, when parameters and
    ///     optimizer have been restored
    /// @throws MisuseException if the name was given before
    public Builder optState(String name, Supplier<String> save, Consumer<String> restore) {
      MisuseException.requireGiven("name of optState", name);
      MisuseException.requireGiven("save of optState", save);
      MisuseException.requireGiven("restore of optState", restore);
      if (userStates.putIfAbsent(name, new UserStates.Access(save, restore)) != null) {
        throw new MisuseException("optState is given twice for '" + name + "'");
      }
      return this;
    }

    private Retention retention() {
      return keepLast == 0 && keepEvery == 0 && keepBest == null
          ? Retention.ALL
          : new Retention(keepLast, keepEvery, Optional.ofNullable(keepBest));
    }

    /// Opens the folder, and removes what saves that never ended have left there.
    ///
    /// @throws MisuseException if there is no directory, or another saver has it open
    /// @throws TransferException if a file operation fails
    public CheckpointSaver build() {
      return new CheckpointSaver(this, MisuseException.requireGiven("setDirectory", directory));
    }
  }
}
