// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.datasets.Alternatives;
import dev.gantry.djl.internal.datasets.ChosenSamples;
import dev.gantry.djl.internal.datasets.DatasetSettings;
import dev.gantry.djl.internal.datasets.FieldRoles;
import dev.gantry.djl.internal.datasets.Normalizations;
import dev.gantry.formats.Field;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.NormalizedBatches;
import dev.gantry.formats.internal.batches.Selection;
import dev.gantry.formats.internal.batches.Weighting;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The options that all datasets have. A later call of an option replaces an earlier one. Not
/// thread-safe.
///
/// @param <T> the builder itself
public abstract sealed class DatasetBuilder<T extends DatasetBuilder<T>>
    permits ShardDataset.Builder, TfRecordDataset.Builder, WebDataset.Builder {
  private static final Logger LOG = LoggerFactory.getLogger(DatasetBuilder.class);

  private static final int DEFAULT_SLOTS = 2;
  private static final String ORDER = "the order of the samples";

  private final Alternatives alternatives = new Alternatives();

  private int batchSize;
  private LastBatch lastBatch = LastBatch.KEEP;
  private Shuffle shuffle = new Shuffle.None();
  private final List<Selection> selections = new ArrayList<>();
  private @Nullable Weighting weighting;
  private int interleave = 1;
  private int interleaveBlock = 1;
  private int rank;
  private int world = 1;
  private long epochs = 1;
  private int slots = DEFAULT_SLOTS;
  private List<Device> devices = List.of();
  private @Nullable List<String> data;
  private @Nullable List<String> labels;
  private final Normalizations normalizations = new Normalizations();
  private UnaryOperator<NDList> transform = UnaryOperator.identity();
  private UnaryOperator<NDList> labelTransform = UnaryOperator.identity();
  private TransferOptions transfer = TransferOptions.defaults().withLimits(EpochBatches.LIMITS);
  private GantrySession session = GantrySession.shared();
  private boolean poison;

  DatasetBuilder() {}

  /// Returns this builder as its own type.
  abstract T self();

  /// How many samples a batch has.
  public T setSampling(int samples) {
    MisuseException.requireRange("setSampling", samples, 1, OrderOptions.MAX_BATCH_SIZE);
    batchSize = samples;
    return self();
  }

  /// Sets what happens to samples that do not fill a batch on every rank; by default, they make a
  /// smaller batch.
  public T optLastBatch(LastBatch chosen) {
    lastBatch = MisuseException.requireGiven("optLastBatch", chosen);
    return self();
  }

  /// Shuffles samples, in another order each epoch; by default samples come in the order of the files.
  /// The order depends only on the dataset, this seed and the epoch. Streams of TFRecord are mixed as
  /// far as their shuffle buffer reaches: [TfRecordOptions#withShuffleBuffer].
  public T optShuffle(long seed) {
    return optShuffle(new Shuffle.Samples(seed));
  }

  /// Shuffles blocks of consecutive samples. This is faster, since each block is one read, but
  /// samples that are adjacent in the files are in the same batch. If files are sorted, for
  /// example by class, a batch should hold many blocks. Not for streams of TFRecord.
  public T optShuffleBlocks(long seed, int samples) {
    MisuseException.requireRange("optShuffleBlocks: samples", samples, 1, Integer.MAX_VALUE);
    return order("optShuffleBlocks", new Shuffle.Blocks(seed, samples));
  }

  /// Shuffles samples, blocks of them, or whole data files.
  public T optShuffle(Shuffle chosen) {
    return order("optShuffle", MisuseException.requireGiven("optShuffle", chosen));
  }

  private T order(String option, Shuffle chosen) {
    alternatives.call(ORDER, option, chosen);
    shuffle = chosen;
    return self();
  }

  /// Reads several files in turn, some samples of each; by default one file after the other. If
  /// samples or blocks are shuffled, this has no effect, since they come from all files anyway.
  /// Only in streams, it mixes the samples that enter the shuffle buffer.
  public T optInterleave(int files, int samples) {
    MisuseException.requireRange("optInterleave: files", files, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("optInterleave: samples", samples, 1, Integer.MAX_VALUE);
    interleave = files;
    interleaveBlock = samples;
    return self();
  }

  /// Keeps the samples from `from` up to the one before `to`, in the order of the files.
  ///
  /// This call and [#optSubset], [#optSplit] and [#optFilter] may be used together: each chooses
  /// from the samples that the calls before it kept, which are numbered from 0. All other options,
  /// and positions of a resumed training, refer only to the samples that are kept. These calls
  /// need samples that are reached by number: raw shards, WebDataset, or TFRecord with an index.
  public T optRange(long from, long to) {
    MisuseException.requireRange("optRange: from", from, 0, Long.MAX_VALUE - 1);
    MisuseException.requireRange("optRange: to", to, from + 1, Long.MAX_VALUE);
    return select(new Selection.Range(from, to));
  }

  /// Keeps the samples of these numbers, each once, in the order of the files.
  public T optSubset(long... numbers) {
    long[] copy = MisuseException.requireGiven("optSubset", numbers).clone();
    return select(new Selection.Numbers(() -> LongStream.of(copy)));
  }

  /// Keeps one of several parts into which the samples fall at random, such as those for training and
  /// validation: `optSplit(42, 0, 9, 1)` keeps nine samples of ten, and `optSplit(42, 1, 9, 1)` the others. With the
  /// same seed and ratio no sample is in two parts, and each is in one.
  ///
  /// @param part the part's number, from 0
  /// @param ratio the sizes of the parts in relation to each other
  public T optSplit(long seed, int part, int... ratio) {
    List<Integer> sizes =
        IntStream.of(MisuseException.requireGiven("optSplit: ratio", ratio)).boxed().toList();
    if (sizes.isEmpty()) {
      throw new MisuseException("optSplit must have a size for each part, such as 9, 1 (was none)");
    }
    MisuseException.requireRange("optSplit of " + sizes + ": part", part, 0, sizes.size() - 1L);
    for (int size : sizes) {
      MisuseException.requireRange("optSplit of " + sizes + ": each size", size, 1, 1 << 20);
    }
    return select(new Selection.Part(seed, part, sizes));
  }

  /// Keeps the samples whose field has one of some values. Building reads this field of all samples, and no
  /// other.
  ///
  /// @param field a field of one number, which need be neither data nor a label
  /// @param keep decides for a sample's value: a [Long] for integers and booleans, otherwise a
  ///     [Double]
  public T optFilter(String field, Predicate<Number> keep) {
    return select(
        new Selection.Where(
            MisuseException.requireGiven("optFilter: field", field),
            MisuseException.requireGiven("optFilter: keep", keep)));
  }

  private T select(Selection selection) {
    selections.add(selection);
    return self();
  }

  /// Draws each class equally often, independent of the number of its samples; see [#optWeights].
  ///
  /// @param field the class of each sample, one number
  public T optBalanced(long seed, String field) {
    alternatives.call(
        ORDER, "optBalanced", MisuseException.requireGiven("optBalanced: field", field));
    weighting = new Weighting.Balanced(seed, field);
    return self();
  }

  /// Draws samples as often as their weights say, instead of [#optShuffle]. An epoch has as many draws as there
  /// are samples; a sample may come several times in it, or not at all. Building reads this field of all samples,
  /// and no other.
  ///
  /// @param field a field of one number, which need be neither data nor a label
  /// @param weight makes a sample's weight, in any unit, of the field's value: a [Long] for integers and
  ///     booleans, else a [Double]
  public T optWeights(long seed, String field, ToDoubleFunction<Number> weight) {
    alternatives.call(
        ORDER, "optWeights", MisuseException.requireGiven("optWeights: field", field));
    weighting =
        new Weighting.ByValue(
            seed, field, MisuseException.requireGiven("optWeights: weight", weight));
    return self();
  }

  /// Chooses the part of the samples that this worker reads. All workers get the same number of batches.
  ///
  /// @param chosenRank this worker's number, from 0
  /// @param chosenWorld how many workers there are
  public T optRank(int chosenRank, int chosenWorld) {
    String call = "optRank(" + chosenRank + ", " + chosenWorld + "): ";
    MisuseException.requireRange(call + "world", chosenWorld, 1, Integer.MAX_VALUE);
    MisuseException.requireRange(call + "rank", chosenRank, 0, chosenWorld - 1);
    rank = chosenRank;
    world = chosenWorld;
    return self();
  }

  /// How many epochs one iteration of `getData` covers; by default one, as `EasyTrain.fit` needs it.
  /// An iteration that resumes in the middle of them ends with the last of them.
  public T optRepeat(long count) {
    MisuseException.requireRange("optRepeat", count, 1, Long.MAX_VALUE);
    epochs = count;
    return self();
  }

  /// Repeats without end.
  public T optRepeat() {
    return optRepeat(Long.MAX_VALUE);
  }

  /// How many batches are in memory at once, including the batch in use; 2 by default. More
  /// batches hide longer delays of the storage.
  public T optPrefetch(int batches) {
    MisuseException.requireRange(
        "optPrefetch", batches, RingOptions.MIN_SLOTS, RingOptions.MAX_SLOTS);
    slots = batches;
    return self();
  }

  /// The device of the batches; by default, the device of the manager that is passed to `getData`.
  public T optDevice(Device chosen) {
    return devices("optDevice", List.of(MisuseException.requireGiven("optDevice", chosen)));
  }

  /// Cuts each batch into equal parts, one for each device, and reads each part to its own device: for a
  /// training on several devices, with the devices of its configuration in the same order. `setSampling` is
  /// the size of the whole batch, a multiple of their number; the first device has the first samples.
  ///
  /// `Batch.split` gives the parts, and `EasyTrain` calls it; `getData` and `getLabels` of the whole batch are
  /// refused. For raw shards, and for TFRecord with an index.
  public T optDevices(Device... chosen) {
    List<Device> all = new ArrayList<>();
    for (Device one : MisuseException.requireGiven("optDevices", chosen)) {
      all.add(MisuseException.requireGiven("optDevices: a device", one));
    }
    if (all.isEmpty() || Set.copyOf(all).size() < all.size()) {
      throw new MisuseException(
          "optDevices must be one or more different devices (was " + all + ")");
    }
    return devices("optDevices", List.copyOf(all));
  }

  private T devices(String option, List<Device> chosen) {
    alternatives.call("the devices", option, chosen);
    devices = chosen;
    return self();
  }

  /// The fields that are the batch's data, in this order; by default, all fields that are not
  /// labels. Only fields that are data or labels are read.
  public T optData(String... fields) {
    data = names("optData", "a field's name", fields);
    return self();
  }

  /// The fields that are the batch's labels, in this order; by default `label`, `labels` or `cls`,
  /// if the dataset has such a field.
  public T optLabels(String... fields) {
    labels = names("optLabels", "a field's name", fields);
    return self();
  }

  static List<String> names(String option, String what, String... names) {
    for (String name : MisuseException.requireGiven(option, names)) {
      String _ = MisuseException.requireGiven(option + ": " + what, name);
    }
    return List.of(names);
  }

  /// Turns a field into FLOAT32: `value · scale + shift`. See [#optNormalize(String, float\[\], float\[\], DataType)].
  public T optNormalize(String field, float scale, float shift) {
    return optNormalize(field, new float[] {scale}, new float[] {shift});
  }

  /// Turns a field into FLOAT32, with a scale and a shift for each channel.
  public T optNormalize(String field, float[] scale, float[] shift) {
    return optNormalize(field, scale, shift, DataType.FLOAT32);
  }

  /// Turns a field into `value · scale + shift`, with a scale and a shift for each channel, while
  /// batches are read ahead; if the GPU fetches the samples itself, the same kernel normalises
  /// them. To replace DJL's `Normalize`, whose mean and standard deviation are of values from 0 to
  /// 1, use for bytes the scale `1 / (255 · std)` and the shift `-mean / std`. A later call for the
  /// same field replaces an earlier one.
  ///
  /// Value, product and sum are rounded to FLOAT32, one after the other, and the sum to the type of the
  /// result: the bits are the same on every device and by every transport.
  ///
  /// @param scale one scale for all channels, or one for each. The channels are the first axis of
  ///     a sample, or with [#optChannelsFirst] its last axis
  /// @param shift as many shifts as there are scales
  /// @param type FLOAT32, FLOAT16 or BFLOAT16
  public T optNormalize(String field, float[] scale, float[] shift, DataType type) {
    normalizations.put(field, scale, shift, type);
    return self();
  }

  /// Moves the last axis of a field's samples to the front: an image of (height, width, channels) becomes
  /// (channels, height, width), as DJL's blocks take it. Only for fields of [#optNormalize]; both are done at
  /// once.
  public T optChannelsFirst(String field) {
    normalizations.putChannelsFirst(field);
    return self();
  }

  /// Sets a function that receives each batch's data, on the device and normalised, and returns
  /// the arrays to use instead. Arrays that it makes from the data belong to the batch. If it
  /// throws, the iteration throws the exception instead of returning the batch, which is skipped.
  public T optTransform(UnaryOperator<NDList> chosen) {
    transform = MisuseException.requireGiven("optTransform", chosen);
    return self();
  }

  /// Does for the labels what [#optTransform] does for the data.
  public T optLabelTransform(UnaryOperator<NDList> chosen) {
    labelTransform = MisuseException.requireGiven("optLabelTransform", chosen);
    return self();
  }

  /// How many threads read at once; 0 for as many as suit the transport and the machine.
  public T optThreads(int threads) {
    transfer = transfer.withThreads(threads);
    return self();
  }

  /// The most bytes of one read; a multiple of 4096.
  public T optRequestBytes(long bytes) {
    transfer = transfer.withLimits(transfer.limits().withRequestBytes(bytes));
    return self();
  }

  /// The only transport to use; by default, a transport is chosen for each file.
  public T optTransport(Transport chosen) {
    transfer = transfer.withTransport(MisuseException.requireGiven("optTransport", chosen));
    return self();
  }

  /// Whether reads go through the page cache; by default, only reads of bytes that are in the page
  /// cache already do.
  public T optCachePolicy(CachePolicy policy) {
    transfer = transfer.withCachePolicy(MisuseException.requireGiven("optCachePolicy", policy));
    return self();
  }

  /// A session of yours, which must stay open; by default the process's shared session.
  public T optSession(Session chosen) {
    session = GantrySession.of(MisuseException.requireGiven("optSession", chosen));
    return self();
  }

  /// Overwrites a batch's memory when the batch is closed, to find code that reads it afterwards.
  public T optPoison(boolean chosen) {
    poison = chosen;
    return self();
  }

  /// @throws MisuseException if the batch size is missing
  OrderOptions order() {
    if (batchSize == 0) {
      throw new MisuseException("setSampling was not called; it says how many samples a batch has");
    }
    if (shuffle instanceof Shuffle.Blocks(_, int block) && block > 1 && block >= batchSize) {
      LOG.warn(
          "optShuffleBlocks: each batch of {} samples is a run of neighbours, since blocks have {};"
              + " where files are sorted, use smaller blocks, or optShuffle(seed)",
          batchSize,
          block);
    }
    return new OrderOptions(
        batchSize, lastBatch, shuffle, interleave, interleaveBlock, rank, world);
  }

  DatasetSettings settings(FieldRoles roles) {
    return new DatasetSettings(
        session, transfer, devices, slots, poison, epochs, roles, transform, labelTransform);
  }

  /// @param available the names of the dataset's fields
  FieldRoles roles(List<String> available) {
    return FieldRoles.of(
        available, Optional.ofNullable(data), Optional.ofNullable(labels), normalizations.all());
  }

  /// The samples that batches are made of.
  ChosenSamples chosen() {
    return new ChosenSamples(selections, Optional.ofNullable(weighting));
  }

  /// Makes batches of samples that are reached by number.
  ///
  /// @param store has the fields of the roles first, and is closed if this throws
  Batches batches(SampleCatalogue store, FieldRoles roles) {
    return Cleanup.orUndo(
        () -> chosen().batches(session, store, roles.all().size(), order(), limits()),
        store::close);
  }

  /// Returns batches whose fields are normalised as `roles` say.
  ///
  /// @param batches closed if this throws
  /// @param fields of the dataset
  Batches normalized(Batches batches, List<Field> fields, FieldRoles roles) {
    return Cleanup.orUndo(
        () -> NormalizedBatches.of(batches, fields, roles.normalizations(), batchSize),
        batches::close);
  }

  GantrySession session() {
    return session;
  }

  /// The limits by which reads are cut into requests.
  PlanLimits limits() {
    return transfer.limits();
  }
}
