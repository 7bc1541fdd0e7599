package dev.gantry.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import dev.gantry.core.Gantry;
import dev.gantry.core.MisuseException;
import dev.gantry.core.io.CachePolicy;
import dev.gantry.core.io.PathKind;
import dev.gantry.core.io.TransferOptions;
import dev.gantry.core.plan.PlanLimits;
import dev.gantry.core.ring.RingOptions;
import dev.gantry.formats.dataset.EpochBatches;
import dev.gantry.formats.dataset.LastBatch;
import dev.gantry.formats.dataset.OrderOptions;
import dev.gantry.formats.dataset.Shuffle;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// What all datasets can be told. For one thread.
///
/// @param <T> the builder itself
public abstract sealed class DatasetBuilder<T extends DatasetBuilder<T>>
    permits ShardDataset.Builder, TfRecordDataset.Builder {
  private static final int DEFAULT_SLOTS = 2;

  /// Large enough that a disk reads a block at once, small enough that a batch has several.
  private static final int DEFAULT_BLOCK_SAMPLES = 32;

  private int batchSize;
  private LastBatch lastBatch = LastBatch.KEEP;
  private Shuffle shuffle = new Shuffle.None();
  private int interleave = 1;
  private int interleaveBlock = 1;
  private int rank;
  private int world = 1;
  private long epochs = 1;
  private int slots = DEFAULT_SLOTS;
  private @Nullable Device device;
  private @Nullable List<String> data;
  private @Nullable List<String> labels;
  private final Map<String, Normalization> normalizations = new LinkedHashMap<>();
  private UnaryOperator<NDList> transform = UnaryOperator.identity();
  private UnaryOperator<NDList> labelTransform = UnaryOperator.identity();
  private TransferOptions transfer = TransferOptions.defaults().withLimits(EpochBatches.LIMITS);
  private Gantry session = Gantry.shared();
  private boolean poison;

  DatasetBuilder() {}

  /// This builder, as what it is.
  abstract T self();

  /// How many samples a batch has.
  public T setSampling(int samples) {
    batchSize = samples;
    return self();
  }

  /// What becomes of samples that do not fill a batch on every rank; by default a smaller one.
  public T optLastBatch(LastBatch chosen) {
    lastBatch = chosen;
    return self();
  }

  /// Blocks of 32 consecutive samples in random order, another one each epoch; by default the
  /// order of the files. The order depends on nothing but the dataset, this seed and the epoch. Not
  /// for streams of TFRecord, of which only whole files can be shuffled: [Shuffle.Shards].
  public T optShuffle(long seed) {
    return optShuffle(new Shuffle.Blocks(seed, DEFAULT_BLOCK_SAMPLES));
  }

  /// Samples, blocks of them, or whole shards in random order.
  public T optShuffle(Shuffle chosen) {
    shuffle = chosen;
    return self();
  }

  /// Reads this many files in turn, so many samples of each; by default one after the other. Not
  /// with blocks in random order, which come from all files anyway.
  public T optInterleave(int files, int samples) {
    interleave = files;
    interleaveBlock = samples;
    return self();
  }

  /// Which part of the samples this worker gets. All workers get the same number of batches.
  ///
  /// @param chosenRank this worker's number, from 0
  /// @param chosenWorld how many workers there are
  public T optShard(int chosenRank, int chosenWorld) {
    rank = chosenRank;
    world = chosenWorld;
    return self();
  }

  /// How many epochs one iteration of `getData` covers; by default one, as `EasyTrain.fit` wants it.
  /// One that goes on in the middle of them ends with the last of them.
  public T optRepeat(long count) {
    epochs = count;
    return self();
  }

  /// For ever: `getData` does not end.
  public T optRepeat() {
    return optRepeat(Long.MAX_VALUE);
  }

  /// How many batches are in memory at once, the one in use included; 2 by default. With more, a
  /// batch may be late now and then without anybody waiting.
  public T optPrefetch(int batches) {
    slots = batches;
    return self();
  }

  /// Where the batches go; by default to the device of the manager that `getData` is given.
  public T optDevice(Device chosen) {
    device = chosen;
    return self();
  }

  /// Which fields are the batch's data, in this order; by default all that are no labels. Only
  /// fields that are data or labels are read.
  public T optData(String... fields) {
    data = List.of(fields);
    return self();
  }

  /// Which fields are the batch's labels, in this order; by default `label` or `labels`, where
  /// there is such a field.
  public T optLabels(String... fields) {
    labels = List.of(fields);
    return self();
  }

  /// Turns a field into FLOAT32 on the device: `value · scale + shift`. What differs by channel is
  /// for [#optTransform].
  public T optNormalize(String field, float scale, float shift) {
    normalizations.put(field, new Normalization(scale, shift));
    return self();
  }

  /// Is given each batch's data, on the device and normalised, and returns what becomes of it.
  /// Arrays that it makes from these belong to the batch. What it throws is thrown in place of the
  /// batch, which is left out then.
  public T optTransform(UnaryOperator<NDList> chosen) {
    transform = chosen;
    return self();
  }

  /// As [#optTransform], for the labels.
  public T optLabelTransform(UnaryOperator<NDList> chosen) {
    labelTransform = chosen;
    return self();
  }

  /// Readers that work at once; 0 for what suits the path and the machine.
  public T optThreads(int threads) {
    transfer = transfer.withThreads(threads);
    return self();
  }

  /// The most that one read asks for, in bytes; a multiple of 4096.
  public T optRequestBytes(long bytes) {
    transfer = transfer.withLimits(transfer.limits().withRequestBytes(bytes));
    return self();
  }

  /// The only path to take; else it is chosen by evidence, per file.
  public T optPath(PathKind path) {
    transfer = transfer.withPath(path);
    return self();
  }

  /// Whether reads go through the page cache; else by looking what lies there.
  public T optCachePolicy(CachePolicy policy) {
    transfer = transfer.withCachePolicy(policy);
    return self();
  }

  /// A session of the caller's, which must stay open; else the process's shared one.
  public T optSession(Gantry chosen) {
    session = chosen;
    return self();
  }

  /// Overwrites a batch's memory when it is closed: a way to find who reads it after that.
  public T optPoison(boolean chosen) {
    poison = chosen;
    return self();
  }

  /// @throws MisuseException if the batch size is missing, or a number makes no sense
  OrderOptions order() {
    if (batchSize == 0) {
      throw new MisuseException("say how many samples a batch has: setSampling");
    }
    try {
      return new OrderOptions(
          batchSize, lastBatch, shuffle, interleave, interleaveBlock, rank, world);
    } catch (IllegalArgumentException refused) {
      throw new MisuseException(String.valueOf(refused.getMessage()));
    }
  }

  /// @throws MisuseException if a number makes no sense
  DatasetSettings settings(FieldRoles roles) {
    if (epochs < 1 || slots < 2 || slots > RingOptions.MOST_SLOTS) {
      throw new MisuseException(
          "a dataset of " + epochs + " epochs, with " + slots + " batches in memory");
    }
    return new DatasetSettings(
        session,
        transfer,
        Optional.ofNullable(device),
        slots,
        poison,
        epochs,
        roles,
        transform,
        labelTransform);
  }

  /// @param available the names of the dataset's fields
  FieldRoles roles(List<String> available) {
    return FieldRoles.of(
        available, Optional.ofNullable(data), Optional.ofNullable(labels), normalizations);
  }

  Gantry session() {
    return session;
  }

  /// How reads are cut.
  PlanLimits limits() {
    return transfer.limits();
  }
}
