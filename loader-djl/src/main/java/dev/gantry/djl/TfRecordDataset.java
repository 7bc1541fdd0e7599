// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.datasets.DatasetSettings;
import dev.gantry.djl.internal.datasets.FieldRoles;
import dev.gantry.djl.internal.datasets.RecordBatches;
import dev.gantry.djl.internal.datasets.RecordFolder;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.FieldNormalization;
import dev.gantry.formats.internal.examples.ExampleParser;
import dev.gantry.formats.internal.examples.Schema;
import dev.gantry.formats.internal.files.NamePatterns;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.streams.StreamedBatches;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Gives the records of TFRecord files, `tf.train.Example` or `SequenceExample`, as batches.
///
/// With an index beside each file ([IndexUse]), bytes and floats of a fixed length go from the file to the
/// device as they are, in any order: their arrays step over what lies between the values, where that is
/// possible, or are packed on the device. Without indexes, the files are streams: records are read in the
/// order of the files, checked and decoded by the CPU, and shuffled as far as a buffer reaches. A state that
/// was saved with indexes cannot be restored without them, nor the other way round.
///
/// A feature becomes an array of its dtype with the batch's axis before its shape. A padded feature is
/// followed by a field of the lengths that its values had, named after it with the ending `_length`; that
/// field is data, like all fields that are no labels, unless `optData` says otherwise.
public final class TfRecordDataset extends GantryDataset {
  private final Batches source;

  private TfRecordDataset(Batches source, Batches batches, DatasetSettings settings) {
    super(batches, settings);
    this.source = source;
  }

  /// A builder; path, features and sampling must be set.
  public static Builder builder() {
    return new Builder();
  }

  /// Reads and checks each file once, and writes its index beside it; an older index is replaced.
  ///
  /// @throws dev.gantry.core.MalformedFileException if a file's framing is broken, a record is no
  ///     example, or a set is not whole
  /// @throws MisuseException if a file is compressed: its records cannot be reached by offset
  /// @throws dev.gantry.core.TransferException if a file cannot be read, or its index not written
  public static void buildIndexes(List<Path> files) {
    buildIndexesOf(locations("buildIndexes: files", files));
  }

  /// Does what [#buildIndexes(List)] does, for files and folders named by paths, patterns or URLs such as
  /// `s3://bucket/folder/`. The index of a remote file is uploaded.
  ///
  /// @throws MisuseException also if a store takes no files
  public static void buildIndexes(String... names) {
    List<String> given = DatasetBuilder.names("buildIndexes", "a name", names);
    buildIndexesOf(NamePatterns.expand(GantrySession.shared(), "buildIndexes", given, false));
  }

  private static void buildIndexesOf(List<Location> locations) {
    RecordFolder.files(GantrySession.shared(), "buildIndexes", locations)
        .forEach(TfRecordDataset::buildIndex);
  }

  private static List<Location> locations(String option, List<Path> files) {
    return MisuseException.requireGiven(option, files).stream()
        .map(file -> Location.of(MisuseException.requireGiven(option + ": a file", file)))
        .toList();
  }

  private static void buildIndex(Location file) {
    TfRecordIndex.Summary _ =
        TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), GantrySession.shared());
  }

  /// Whether the files are read by their indexes.
  public boolean isIndexed() {
    return records().isEmpty();
  }

  /// Counts what was read from streams since this was built, and the faults that were passed over; empty
  /// where files are read by their indexes.
  public Optional<TfRecordReader.Statistics> records() {
    return source instanceof StreamedBatches streamed
        ? Optional.of(streamed.statistics())
        : Optional.empty();
  }

  /// Makes [TfRecordDataset]s. Not thread-safe.
  public static final class Builder extends DatasetBuilder<Builder> {
    private Function<GantrySession, List<Location>> given = _ -> List.of();

    private final List<FeatureSpec> features = new ArrayList<>();
    private IndexUse indexUse = IndexUse.WHERE_THERE;
    private boolean isIndexUseChosen;
    private TfRecordOptions options = TfRecordOptions.defaults();

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /// One file, or a folder: then its files, in the order of their names, but for indexes and names that begin with
    /// `.` or `_`; where Spark wrote a set into the folder, the files of that set. Folders below it are not read, and a
    /// [Path] is no pattern: `*` and `?` stand for themselves.
    public Builder setPath(Path chosen) {
      return setPath(List.of(MisuseException.requireGiven("setPath", chosen)));
    }

    /// The files, in their order; a folder stands for the files in it, as [#setPath(Path)] says. You may name some
    /// files of a set without the others; but [#build] refuses them if any file is missing that the set's list beside them
    /// (`_gantry-files-NAME`) names.
    public Builder setPath(List<Path> chosen) {
      List<Location> files = locations("setPath", chosen);
      given = _ -> files;
      return this;
    }

    /// The files, in their order, by their paths or by URLs such as `s3://bucket/folder/a.tfrecord`. A name may
    /// stand for several, as in `train-*.tfrecord` and `train-{000..127}.tfrecord`. A local
    /// folder, and a remote one whose name ends in a slash, stands for the files in it, as [#setPath(Path)] says.
    /// Folders are listed by [#build], which refuses a set that is not whole.
    public Builder setPath(String... chosen) {
      List<String> names = names("setPath", "a name", chosen);
      given = session -> NamePatterns.expand(session, "setPath", names, false);
      return this;
    }

    /// Adds a feature that becomes a field. If you add none, the features are inferred from the first 100
    /// records ([Schema#infer]); better name them, since a later record that differs is an error.
    public Builder addFeature(FeatureSpec feature) {
      features.add(MisuseException.requireGiven("addFeature", feature));
      return this;
    }

    /// Whether indexes are used; by default, where they are there. Several workers that shuffle must all read
    /// by indexes or all as streams: if this worker would then read streams because an index is missing, that
    /// is refused unless you called this.
    public Builder optIndex(IndexUse chosen) {
      indexUse = MisuseException.requireGiven("optIndex", chosen);
      isIndexUseChosen = true;
      return this;
    }

    /// How streams are read: compression, what becomes of broken records, how large the records of
    /// a batch may be, and what [#optShuffle(long)] mixes. Indexes are built of files without a
    /// fault only.
    public Builder optRecords(TfRecordOptions chosen) {
      options = MisuseException.requireGiven("optRecords", chosen);
      return this;
    }

    /// @throws MisuseException if files or batch size are missing, a field is unknown, none is a
    ///     label, or the files cannot be read in this order or by indexes as was asked for
    /// @throws dev.gantry.core.MalformedFileException if a set of files is not whole, an index is damaged, or a file
    ///     that is to be indexed is
    /// @throws dev.gantry.core.TransferException if a folder cannot be listed, a file cannot be read, or an index not
    ///     written
    public TfRecordDataset build() {
      // Found here: the session that lists them may be chosen after them.
      List<Location> files = RecordFolder.files(session(), "setPath", given.apply(session()));
      if (files.isEmpty()) {
        throw new MisuseException("setPath must be called with at least one file to read");
      }
      List<FeatureSpec> known =
          features.isEmpty()
              ? Schema.infer(session(), files, options, Schema.USUAL_RECORDS)
              : features;
      Map<String, FeatureSpec> byField = new HashMap<>();
      for (FeatureSpec feature : known) {
        feature.lengthField().ifPresent(length -> byField.put(length.name(), feature));
      }
      known.forEach(feature -> byField.put(feature.name(), feature));
      List<Field> fields = new ExampleParser(known).fields();
      List<String> available = fields.stream().map(Field::name).toList();
      FieldRoles roles = roles(available);
      DatasetSettings settings = settings(roles);
      List<FeatureSpec> read =
          chosen().fields(roles.all(), available).stream()
              .map(name -> Objects.requireNonNull(byField.get(name)))
              .distinct()
              .toList();
      read.forEach(feature -> requireOneScale(feature, roles.normalizations().get(feature.name())));
      RecordBatches source =
          new RecordBatches(
              session(), files, read, chosen(), roles.all().size(), order(), limits(), options);
      Batches batches =
          switch (indexUse) {
            case NONE -> source.streamed();
            case REQUIRE -> source.indexed();
            case BUILD -> source.built();
            case WHERE_THERE -> source.preferablyIndexed(isIndexUseChosen);
          };
      return new TfRecordDataset(batches, normalized(batches, fields, roles), settings);
    }

    /// Refuses a scale for each element of an axis that is padded to the batch's longest sample: its length
    /// differs from batch to batch.
    private static void requireOneScale(FeatureSpec feature, @Nullable FieldNormalization how) {
      FeatureSpec.PadTo padTo =
          switch (feature) {
            case FeatureSpec.VariableLength(_, _, _, _, _, FeatureSpec.PadTo to) -> to;
            case FeatureSpec.VariableSteps(_, _, _, _, _, _, FeatureSpec.PadTo to) -> to;
            case FeatureSpec.FixedLength _, FeatureSpec.FixedSteps _, FeatureSpec.Decoded _ ->
                FeatureSpec.PadTo.MOST;
          };
      if (how != null
          && padTo == FeatureSpec.PadTo.LONGEST
          && !how.channelsFirst()
          && how.scale().size() > 1) {
        throw new MisuseException(
            ("optNormalize: the field '%s' is padded to the longest of each batch; give "
                    + "one scale (were %s)")
                .formatted(feature.name(), how.scale().size()));
      }
    }
  }
}
