// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.training.listener.TrainingListener;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.ring.RingStatistics;
import dev.gantry.djl.internal.datasets.DatasetIteration;
import dev.gantry.djl.internal.datasets.DatasetSettings;
import dev.gantry.djl.internal.datasets.StatisticsListener;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.DatasetState;
import dev.gantry.formats.internal.batches.FieldNumbers;
import dev.gantry.formats.internal.batches.SelectedSamples;
import dev.gantry.formats.spi.SampleCatalogue;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Returns the samples of files as batches. They are read ahead into memory of the device, and the
/// batches' arrays are over that memory, without a copy.
///
/// After you have closed a batch, and the kernels queued before have run, its memory is filled
/// again. Therefore close batches, as `EasyTrain.fit` does. You may keep an array or view longer:
/// it keeps the batch's memory, and the dataset allocates new memory. At most `optPrefetch`
/// batches may be open at once.
///
/// Each iteration of `getData` covers the next epoch, or as many epochs as `optRepeat` says. Only
/// one iteration runs at a time: beginning another one ends it, logs a warning and skips its other
/// batches (if it repeats without end, those of its current epoch); it throws if you ask it for
/// more. If you leave an iteration early, begin another one or call [#close]; closing the manager
/// ends it, too. Not thread-safe, except [#state], [#statistics] and [#close].
public abstract sealed class GantryDataset implements ResumableDataset
    permits ShardDataset, TfRecordDataset, WebDataset {
  private final Batches batches;
  private final DatasetSettings settings;

  /// The batches of each device, one element per device.
  private final List<Batches> parts;

  /// The state in which the next iteration begins.
  private DatasetState next;

  private @Nullable DatasetIteration current;
  private boolean closed;

  GantryDataset(Batches batches, DatasetSettings settings) {
    this.batches = batches;
    this.settings = settings;
    int devices = settings.devices().size();
    this.parts =
        devices < 2
            ? List.of(batches)
            : Cleanup.orUndo(() -> batches.parts(devices), batches::close);
    this.next = batches.start();
  }

  /// @throws MisuseException if the manager is not of DJL's PyTorch engine
  @Override
  public Iterable<Batch> getData(NDManager manager) {
    MisuseException.requireGiven("manager", manager);
    return () -> begin(manager);
  }

  synchronized DatasetIteration begin(NDManager manager) {
    if (closed) {
      throw new MisuseException("this dataset is closed");
    }
    if (current != null && !current.leavesNothing()) {
      current.supersede();
    }
    endEpoch();
    DatasetIteration iteration = new DatasetIteration(parts, next, settings, manager);
    current = iteration;
    return iteration;
  }

  /// Ends the iteration, and skips its other batches.
  synchronized void endEpoch() {
    if (current != null) {
      next = current.follower();
      current.close();
      current = null;
    }
  }

  @Override
  public synchronized String state() {
    return (current == null ? next : current.state()).toText();
  }

  @Override
  public synchronized boolean isEpochOver() {
    return current != null && current.isOver();
  }

  @Override
  public synchronized void restore(String state) {
    DatasetState restored = check(state);
    endEpoch();
    next = restored;
  }

  /// @throws MisuseException if `state` is not one of this dataset
  DatasetState check(String state) {
    DatasetState parsed = DatasetState.parse(MisuseException.requireGiven("state", state));
    // Opening the batches throws if the state is of another dataset.
    batches.from(parsed).close();
    return parsed;
  }

  /// How many batches an epoch has, which is the same on every rank; empty if the number is not
  /// known without reading the files.
  public OptionalLong batchesPerEpoch() {
    return batches.batchesPerEpoch();
  }

  /// How many samples an epoch has, over all ranks: those that the builder's options keep, each
  /// counted once. Empty if the number is not known without reading the files, as for streams of
  /// TFRecord.
  public OptionalLong size() {
    return batches.catalogue().stream().mapToLong(SelectedSamples::count).findFirst();
  }

  /// Weights for a loss in which each class counts the same: the number of samples, divided by the number of
  /// classes and by that of the class's own samples, as scikit-learn's `balanced` has it. Reads the field of all
  /// samples that the builder's options keep.
  ///
  /// @param field an integer of the batches' data or labels
  /// @return by class
  /// @throws MisuseException if there is no such field, or samples are not reached by number
  public SortedMap<Long, Double> classWeights(String field) {
    SampleCatalogue samples =
        batches
            .catalogue()
            .orElseThrow(() ->
                new MisuseException(
                    "classWeights needs records that are reached by number, and streams have none:"
                        + " index the files, by optIndex(IndexUse.BUILD)"));
    SortedMap<Long, Long> counts = FieldNumbers.counts(settings.session(), samples, field);
    double share = (double) SelectedSamples.count(samples) / counts.size();
    SortedMap<Long, Double> weights = new TreeMap<>();
    counts.forEach((number, count) -> weights.put(number, share / count));
    return weights;
  }

  /// How many batches an iteration that begins with an epoch has.
  OptionalLong batchesPerIteration() {
    OptionalLong perEpoch = batchesPerEpoch();
    boolean countable =
        perEpoch.isPresent()
            && perEpoch.getAsLong() <= Long.MAX_VALUE / Math.max(1, settings.epochs()) - 1;
    return countable
        ? OptionalLong.of(perEpoch.getAsLong() * settings.epochs())
        : OptionalLong.empty();
  }

  /// Counts what the last iteration has done so far; empty before the first one. The bytes of TFRecord
  /// streams are not in its transfer: see [TfRecordDataset#records].
  public Optional<Statistics> statistics() {
    return ringStatistics()
        .map(ring ->
            new Statistics(
                ring.batches(),
                ring.waits(),
                ring.waited(),
                ring.stalls(),
                ring.slotsReplaced(),
                ring.hostBytes(),
                ring.transfer()));
  }

  private synchronized Optional<RingStatistics> ringStatistics() {
    return Optional.ofNullable(current).map(DatasetIteration::statistics);
  }

  /// Returns a listener for the training's configuration. If the trainer has metrics, it adds to them after
  /// each training batch, since the batch before: how long the training waited for a batch, in milliseconds
  /// (`dataset_wait`), how many bytes were read or written into batches to come (`dataset_bytes`), and how
  /// many batches were handed over (`dataset_batches`).
  public TrainingListener metricsListener() {
    return new StatisticsListener(this::ringStatistics);
  }

  /// Counts what an iteration has done so far.
  ///
  /// @param batches handed over
  /// @param waits how often the training found no batch ready, not counting the end
  /// @param waited how long the training waited then, altogether
  /// @param stalls how often all batches were ready, and the readers waited for the training
  /// @param slotsReplaced how often a batch was closed while its arrays were still in use, so that
  ///     the dataset allocated other memory
  /// @param hostBytes bytes that the CPU wrote
  /// @param transfer bytes and reads by transport
  public record Statistics(
      long batches,
      long waits,
      Duration waited,
      long stalls,
      long slotsReplaced,
      long hostBytes,
      TransferReport transfer) {}

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      try (batches;
          var _ = current) {}
    }
  }
}
