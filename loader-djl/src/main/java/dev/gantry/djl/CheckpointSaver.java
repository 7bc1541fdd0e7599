// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.training.Trainer;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.training.CheckpointChoice;
import dev.gantry.djl.internal.training.RestoreTarget;
import dev.gantry.djl.internal.training.TrainingMoment;
import dev.gantry.djl.internal.training.TrainingRestore;
import dev.gantry.djl.internal.training.UserStates;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.SaveQueue;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Saves checkpoints of a training into a folder, and restores them, in this process or another.
///
/// A checkpoint holds the model's parameters, the optimizer's state, the random number generators,
/// step and epoch. A training that resumes from it makes the same steps as the uninterrupted one,
/// bit for bit, if its kernels are deterministic. Gradients that wait for a step are not saved. A
/// save that has been reported is complete on the disk. If the process or the machine dies during
/// a save, the earlier checkpoints do not change. The parameters are ordinary safetensors files:
/// you can open a checkpoint's folder as a model, with [Weights] or another reader.
///
/// Parameters are named by their paths, as in `Block#getParameters`; a parameter with several
/// paths is saved once. Supported optimizers are DJL's Adam, AdamW, Sgd, Nag, RmsProp, Adagrad and
/// Adadelta, and subclasses of them without state of their own; a subclass with fields that may be
/// state is refused.
///
/// A saver saves one model. A training of several models, such as a GAN, needs a saver with a
/// folder of its own for each model. Only one saver of all processes can have a folder open at a
/// time. Call its methods on the thread that steps the trainer; another thread writes asynchronous
/// saves. After [#close], all calls throw a [MisuseException].
public final class CheckpointSaver implements AutoCloseable {
  private final Checkpoints checkpoints;
  private final CheckpointStore store;
  private final Saves saves;
  private final CheckpointChoice choice;
  private final Optional<Retention.Best> keepBest;
  private final UserStates userStates;
  private long restores;
  private boolean closed;

  private CheckpointSaver(Builder builder, Path path, CheckpointStore store) {
    this.checkpoints = Checkpoints.at(path, builder.session);
    this.keepBest = Optional.ofNullable(builder.keepBest);
    this.userStates = new UserStates(builder.userStates);
    this.store = store;
    this.choice =
        new CheckpointChoice(
            builder.session, path, store, builder.verify, builder.fallBack, userStates);
    this.saves = new Saves(builder, path, store, userStates);
  }

  /// Returns a builder; you must set its path.
  public static Builder builder() {
    return new Builder();
  }

  /// Saves a model and its trainer's state.
  ///
  /// @param step how many steps the training has made; 0 or more
  /// @see #save(SaveRequest)
  public CompletableFuture<SaveOutcome> save(long step, Model model, Trainer trainer) {
    MisuseException.requireRange("step", step, 0, Long.MAX_VALUE);
    MisuseException.requireGiven("model", model);
    MisuseException.requireGiven("trainer", trainer);
    return save(SaveRequest.builder().setStep(step).setModel(model).optTrainer(trainer).build());
  }

  /// Saves a checkpoint. With [SaveMode#SYNC], it is on the disk when this returns. With
  /// [SaveMode#ASYNC], this returns after a snapshot is taken; the tensors may change then, and
  /// the future completes when the checkpoint is on the disk. A failed save is also rethrown,
  /// once, by the next call that saves, restores, waits or closes, so it cannot go unnoticed.
  ///
  /// @return the outcome of the save; with [SaveMode#SYNC], it is complete
  /// @throws TransferException if a file or device fails, or an earlier save failed
  /// @throws MisuseException if the trainer is of another model, a parameter is not initialised or
  ///     has a type that cannot be saved, the optimizer is not supported, or this saver has saved
  ///     another model that is still open
  public CompletableFuture<SaveOutcome> save(SaveRequest request) {
    MisuseException.requireGiven("request", request);
    requireOpen();
    saves.warnOfMissingMetric(request);
    return saves.save(request, Optional.empty(), saves.modeOfUser());
  }

  /// Saves for a [CheckpointListener].
  CompletableFuture<SaveOutcome> save(SaveRequest request, Optional<TrainingMoment> moment) {
    requireOpen();
    return saves.save(request, moment, saves.modeOfListener());
  }

  /// Takes the memory for snapshots in the background, so that the first save stops the training
  /// no longer than later saves. A [CheckpointListener] calls this by itself. With [SaveMode#SYNC], or
  /// without `optMode`, your own saves take no snapshots, and this does nothing. Too little memory is logged.
  ///
  /// @param trainer an initialised trainer; it may train meanwhile
  /// @return a future that completes when the memory is allocated, or its allocation has failed. A
  ///     save that is requested before waits for the memory
  /// @throws MisuseException as [#save(SaveRequest)]
  public CompletableFuture<Void> prepare(Model model, Trainer trainer) {
    MisuseException.requireGiven("model", model);
    MisuseException.requireGiven("trainer", trainer);
    requireOpen();
    return saves.prepare(model, trainer, saves.modeOfUser());
  }

  /// Prepares the saves of a [CheckpointListener].
  CompletableFuture<Void> prepare(Trainer trainer) {
    requireOpen();
    return saves.prepare(trainer.getModel(), trainer, saves.modeOfListener());
  }

  /// Waits until no snapshot is being taken any more. With [SaveMode#OVERLAPPED], call this before
  /// you change parameters in any other way than by `Trainer#step`, which waits by itself.
  public void awaitSnapshot() {
    requireOpen();
    saves.queue().ifPresent(SaveQueue::awaitSnapshot);
  }

  /// Whether the snapshots of a [CheckpointListener] are taken while the training goes on.
  boolean overlaps() {
    return saves.modeOfListener() == SaveMode.OVERLAPPED;
  }

  /// Copies what the forward pass has changed, for a save after the step. The caller closes it.
  TrainingMoment moment(Trainer trainer) {
    return TrainingMoment.copy(trainer, userStates);
  }

  /// Whether a call may throw the failure of an earlier save.
  boolean isAsync() {
    return saves.queue().isPresent();
  }

  /// How many checkpoints this saver has restored.
  long restores() {
    return restores;
  }

  /// Waits until all saves are on the disk.
  ///
  /// @throws TransferException if a save failed and no call has thrown its failure yet
  public void await() {
    requireOpen();
    saves.queue().ifPresent(SaveQueue::await);
  }

  /// Waits until all saves are on the disk and, with `optRemote`, in the other store.
  ///
  /// @throws TransferException if a save failed and no call has thrown that yet, or a checkpoint could not
  ///     be uploaded
  public void awaitUploads() {
    await();
    store.awaitUploads();
  }

  /// All checkpoints on the disk, in the order in which they were saved. If a step was saved
  /// several times, only the last of its checkpoints is listed. Checkpoints with a damaged
  /// manifest are left out, and a warning is logged.
  ///
  /// @throws TransferException if the folder or a manifest cannot be read
  public List<StoredCheckpoint> list() {
    requireOpen();
    return checkpoints.list();
  }

  /// The checkpoint on the disk that was saved last. With `optFallBack`, the last of [#list].
  ///
  /// @throws MalformedFileException without `optFallBack`, if its manifest is damaged
  public Optional<StoredCheckpoint> latest() {
    requireOpen();
    return choice.latest();
  }

  /// The best checkpoint of [#list] by `optKeepBest`, or empty if none has its metric.
  ///
  /// @throws MisuseException if the saver was built without `optKeepBest`
  public Optional<StoredCheckpoint> best() {
    Retention.Best best =
        keepBest.orElseThrow(() ->
            new MisuseException("optKeepBest must be set: it says which checkpoint is the best"));
    return best.of(list());
  }

  /// Restores the checkpoint that was saved last. If there is none, it changes nothing. With `optRemote`, a
  /// checkpoint of the other store that was saved later than those on the disk is copied to the disk first.
  ///
  /// If that checkpoint is damaged, and the other store has an intact copy of it, the copy
  /// replaces it on the disk. If there is no such copy and `optFallBack` is set, the last intact
  /// checkpoint before it is restored. A checkpoint with a damaged manifest counts as the last,
  /// unless its folder's name or the readable part of the manifest shows that another checkpoint
  /// was saved after it.
  ///
  /// @param trainer that has been initialised, or null: see [#restore(long, Model, Trainer)]
  /// @throws MalformedFileException if the checkpoint is damaged; names the file and, if one is
  ///     damaged, the tensor. With `optFallBack`, if all are damaged. Nothing has changed then
  /// @throws MisuseException if it is of another model or optimizer, or was saved without a trainer
  ///     and is restored with one. Nothing has changed then
  /// @throws TransferException if a file or device fails, or an earlier save failed
  public Optional<RestoredTraining> restoreLatest(Model model, @Nullable Trainer trainer) {
    MisuseException.requireGiven("model", model);
    await();
    RestoreTarget target = new RestoreTarget(model, trainer);
    return choice.restore(OptionalLong.empty(), target).map(this::restored);
  }

  /// Restores all or a part of a checkpoint, as the request says. If the request has a step, the
  /// checkpoint is chosen as by [#restore(long, Model, Trainer)], otherwise as by
  /// [#restoreLatest]. Use this to continue with a changed training, for example with a new head
  /// or another optimizer.
  ///
  /// @throws MisuseException if one of these methods throws it, or if nothing would be restored
  public Optional<RestoredTraining> restore(RestoreRequest request) {
    MisuseException.requireGiven("request", request);
    await();
    return choice.restore(request.step(), request.target()).map(this::restored);
  }

  private RestoredTraining restored(TrainingRestore.Restored restored) {
    restores++;
    store.goOnFrom(restored.checkpoint());
    return RestoredTraining.of(restored);
  }

  /// Restores the checkpoint of a step. Names, shapes, types and (see `optVerify`) checksums are
  /// checked before anything changes. Then the checkpoint is loaded part by part into the existing
  /// arrays, which takes no more memory on the trainer's device than one part (512 MiB, or a
  /// single larger row). If the load fails after the first part, the exception says that values
  /// are mixed: restore again. A random number generator that was not saved, such as that of
  /// another device, keeps its state.
  ///
  /// @param trainer that has been initialised; or null to restore the model's parameters only. Then
  ///     a parameter without an array gets the loaded one, and an initialised one keeps its array,
  ///     into which the values are copied, cast where both types are floating-point
  /// @throws MisuseException if there is no checkpoint of that step, it is of another model or optimizer, or
  ///     it was saved without a trainer and is restored with one. Nothing has changed then
  /// @throws MalformedFileException if it is damaged; names the file, and the tensor if one is. Nothing has changed then
  /// @throws TransferException if a file or device fails, or an earlier save failed
  public RestoredTraining restore(long step, Model model, @Nullable Trainer trainer) {
    MisuseException.requireGiven("model", model);
    await();
    RestoreTarget target = new RestoreTarget(model, trainer);
    return restored(choice.restore(OptionalLong.of(step), target).orElseThrow());
  }

  /// The metric of `optKeepBest`, if that was chosen.
  Optional<String> keepBestMetric() {
    return keepBest.map(Retention.Best::metric);
  }

  private void requireOpen() {
    if (closed) {
      throw new MisuseException(
          "this checkpoint saver is closed; close it after the trainer, whose end may be saved,"
              + " too");
    }
  }

  /// Waits until all saves are on the disk and, with `optRemote`, in the other store. Releases the folder,
  /// also if this throws. Idempotent.
  ///
  /// @throws TransferException if a save failed and no call has thrown that yet, or a checkpoint could not
  ///     be uploaded
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    try (store) {
      saves.queue().ifPresent(SaveQueue::close);
    }
  }

  /// Makes [CheckpointSaver]s. Not thread-safe.
  public static final class Builder extends WeightsWriter.Options<Builder> {
    private @Nullable Path path;
    private int keepLast;
    private long keepEvery;
    Retention.@Nullable Best keepBest;
    private @Nullable Location remote;
    private @Nullable Retention remoteRetention;
    @Nullable ParameterNames dcp;
    @Nullable SaveMode mode;
    Supplier<ExecutorService> copier = SaveQueue::newCopier;
    BusyPolicy busyPolicy = BusyPolicy.WAIT;
    SnapshotLimits snapshots = SnapshotLimits.DEFAULT;
    private boolean verify = true;
    private boolean fallBack;
    private final SequencedMap<String, UserStates.Access> userStates = new LinkedHashMap<>();

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /// The folder of checkpoints; it is created if it is missing.
    public Builder setPath(Path chosen) {
      path = MisuseException.requireGiven("setPath", chosen);
      return this;
    }

    /// Keeps the last `count` checkpoints, besides those that other rules keep. Without any rule,
    /// all checkpoints are kept. The last checkpoint is always kept.
    public Builder optKeepLast(int count) {
      MisuseException.requireRange("optKeepLast", count, 0, Integer.MAX_VALUE);
      keepLast = count;
      return this;
    }

    /// Keeps the checkpoints of steps that are multiples of `steps`.
    public Builder optKeepEvery(long steps) {
      MisuseException.requireRange("optKeepEvery", steps, 0, Long.MAX_VALUE);
      keepEvery = steps;
      return this;
    }

    /// Keeps the best `count` checkpoints by a metric that is saved with them. Among checkpoints
    /// with equal metrics, those that were saved first count as better. A checkpoint without the
    /// metric is never among the best. A [CheckpointListener] saves the results of DJL's
    /// evaluators, such as `validate_loss` and `validate_Accuracy`.
    public Builder optKeepBest(String metric, int count, Retention.Goal goal) {
      MisuseException.requireRange("count of optKeepBest", count, 1, Integer.MAX_VALUE);
      MisuseException.requireGiven("metric of optKeepBest", metric);
      MisuseException.requireGiven("goal of optKeepBest", goal);
      keepBest = new Retention.Best(metric, count, goal);
      return this;
    }

    /// A folder of another store, such as `s3://bucket/run-7`, to which checkpoints are copied in
    /// the background after they are on the disk. The same rules as on the disk decide which
    /// copies are kept. Default: there are no copies.
    ///
    /// An upload that fails is tried again with the next save. A checkpoint stays on the disk
    /// while it is being uploaded, and the last checkpoint stays until its upload is complete.
    /// Only one saver at a time may use the folder: as soon as another saver opens it, the uploads
    /// of the earlier saver fail. The store must answer when the saver is built.
    ///
    /// @throws MisuseException if it is no location of another store
    public Builder optRemote(String folder) {
      remote = Location.of(MisuseException.requireGiven("optRemote", folder));
      return this;
    }

    /// Does what [#optRemote(String)] does, with separate rules that decide which copies are kept.
    public Builder optRemote(String folder, Retention kept) {
      remoteRetention = MisuseException.requireGiven("retention of optRemote", kept);
      return optRemote(folder);
    }

    /// Also writes each checkpoint in the format of `torch.distributed.checkpoint`, from which
    /// PyTorch can continue: see [Checkpoints#saveDcp]. The two files of this format double the
    /// memory and the disk space of a checkpoint, and are removed with it. The rules give the
    /// names of the model's tensors in this format.
    public Builder optDcp(ParameterNames names) {
      dcp = MisuseException.requireGiven("optDcp", names);
      return this;
    }

    /// Sets when a save returns. Default: [SaveMode#SYNC] for the saves that you call yourself, and
    /// [SaveMode#ASYNC] for those of a [CheckpointListener].
    public Builder optMode(SaveMode chosen) {
      mode = MisuseException.requireGiven("optMode", chosen);
      return this;
    }

    /// Replaces the thread that takes snapshots, which tests hold up.
    Builder optCopier(Supplier<ExecutorService> chosen) {
      copier = chosen;
      return this;
    }

    /// Sets what a save does while another save is being written; default: it waits.
    public Builder optBusyPolicy(BusyPolicy chosen) {
      busyPolicy = MisuseException.requireGiven("optBusyPolicy", chosen);
      return this;
    }

    /// How many bytes snapshots may take on each device and in host memory; default: none on a
    /// device, and seven eighths of the available host memory, or half of what is available when the
    /// saver is built if `optMode` is not chosen. Not allowed with [SaveMode#SYNC]. A
    /// snapshot on the device is faster than a snapshot in host memory. If there is too little
    /// memory for a snapshot, the checkpoint is written before the save returns.
    public Builder optSnapshots(long deviceBytes, long hostBytes) {
      snapshots = new SnapshotLimits(deviceBytes, hostBytes);
      return this;
    }

    /// Whether a restore compares the tensors' checksums; default: true. The sizes of files, and
    /// the checksums of headers and manifests, are always compared.
    public Builder optVerify(boolean chosen) {
      verify = chosen;
      return this;
    }

    /// Whether [CheckpointSaver#restoreLatest] falls back to the checkpoint before a damaged one, on the disk
    /// or with `optRemote` in the other store, with a warning in the log. Default: a damaged checkpoint is an
    /// error.
    public Builder optFallBack(boolean chosen) {
      fallBack = chosen;
      return this;
    }

    /// A state of your own that the training needs, such as how many numbers a transform of the
    /// dataset has drawn from a `java.util.Random`. It is saved and restored together with a
    /// trainer, and never without a trainer. If a state was not saved, a restore does not call its
    /// function and logs this.
    ///
    /// Both functions are called on the thread that saves or restores. A [CheckpointListener]
    /// saves the state that was current after the step's batch had been taken.
    ///
    /// @param name the name of the state in the checkpoint
    /// @param save returns the state as a text; its exceptions are thrown by the save
    /// @param restore receives that text; its exceptions are thrown by the restore, after
    ///     parameters and optimizer have been restored
    /// @throws MisuseException if the name was given before
    public Builder optState(String name, Supplier<String> save, Consumer<String> restore) {
      UserStates.add(userStates, name, save, restore);
      return this;
    }

    private Retention retention() {
      return keepLast == 0 && keepEvery == 0 && keepBest == null
          ? Retention.ALL
          : new Retention(keepLast, keepEvery, Optional.ofNullable(keepBest));
    }

    private Optional<CheckpointStore.Remote> remote() {
      Retention kept = Objects.requireNonNullElseGet(remoteRetention, this::retention);
      return Optional.ofNullable(remote).map(folder -> new CheckpointStore.Remote(folder, kept));
    }

    /// Opens the folder, and removes the files of interrupted saves; with `optRemote`, also from the other
    /// store.
    ///
    /// @throws MisuseException if no path is set, another saver has the folder open,
    ///     `optSnapshots` is chosen with [SaveMode#SYNC], or files cannot be copied to where
    ///     `optRemote` says
    /// @throws TransferException if a file operation fails, or the other store does not answer or refuses
    public CheckpointSaver build() {
      if (mode == SaveMode.SYNC && !snapshots.equals(SnapshotLimits.DEFAULT)) {
        throw new MisuseException(
            "optSnapshots needs optMode(SaveMode.ASYNC) or OVERLAPPED: other saves take none");
      }
      Path folder = MisuseException.requireGiven("setPath", path);
      return Cleanup.orUndo(
          () -> CheckpointStore.open(session, folder, retention(), files.fileBytes(), remote()),
          store -> new CheckpointSaver(this, folder, store),
          CheckpointStore::close);
    }
  }
}
