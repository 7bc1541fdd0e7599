// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.index.TfRecordCatalogue;
import dev.gantry.formats.internal.index.TfRecordField;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.streams.StreamedBatches;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/// Opens TFRecord files as batches. It reads them by their indexes or as streams, and chooses
/// between the two.
///
/// @param features the features to read, in the order of the fields
/// @param chosen which samples of indexed files are read
/// @param count how many of the fields, from the first, a batch has; the other fields only choose
///     samples
/// @param limits the limits of reads by an index
/// @param options the options of streams
public record RecordBatches(
    GantrySession session,
    List<Location> files,
    List<FeatureSpec> features,
    ChosenSamples chosen,
    int count,
    OrderOptions order,
    PlanLimits limits,
    TfRecordOptions options) {
  private static final Logger LOG = LoggerFactory.getLogger(RecordBatches.class);

  private static final String STREAMED =
      "optRange, optSubset, optSplit, optFilter, optBalanced and optWeights need records that are"
          + " reached by number, and streams have none: index the files, by"
          + " optIndex(IndexUse.BUILD)";

  /// Builds the indexes that are missing, and reads by the indexes.
  public Batches built() {
    files.forEach(this::buildIfNeeded);
    return indexed();
  }

  /// Reads by the indexes if all files have usable ones, else as streams.
  ///
  /// @param isChosen whether the caller asked for this behaviour by its option
  /// @throws MisuseException if streams are needed but were not asked for, and there are several
  ///     ranks: ranks that have indexes would shuffle into another order
  public Batches preferablyIndexed(boolean isChosen) {
    SampleCatalogue store;
    try {
      store = catalogue();
    } catch (MisuseException e) {
      if (!chosen.isAll()) {
        throw new MisuseException(e.getMessage() + ". " + STREAMED);
      }
      if (order.shuffle() instanceof Shuffle.Blocks) {
        throw e;
      }
      boolean differs = order.world() > 1 && !(order.shuffle() instanceof Shuffle.None);
      if (differs && !isChosen) {
        throw new MisuseException(
            "optIndex must be given where several ranks shuffle, since those with indexes have"
                + " another order than those without: BUILD or REQUIRE on all, or NONE on all ("
                + e.getMessage()
                + ")");
      }
      LOG.atLevel(differs ? Level.WARN : Level.INFO)
          .log("TFRecord files are read as streams: {}", e.getMessage());
      return streamed();
    }
    return chosen.batches(session, store, count, order, limits);
  }

  /// Builds the index unless it is usable and holds all features. An index may have been built
  /// with only some of the features.
  private void buildIfNeeded(Location file) {
    String reason =
        switch (TfRecordIndex.open(file, session)) {
          case TfRecordIndex.Found.Unusable(String why) -> why;
          case TfRecordIndex.Found.Usable(TfRecordIndex index) -> {
            try (index) {
              yield lacking(index.summary()).stream()
                  .map(name -> TfRecordIndex.indexFile(file) + " lacks the feature '" + name + "'")
                  .findFirst()
                  .orElse("");
            }
          }
        };
    if (!reason.isEmpty()) {
      LOG.info("{}: it is built now", reason);
      TfRecordIndex.Summary _ =
          TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
    }
  }

  /// Returns the features that the index lacks; none for a file without records, because its index
  /// has no features.
  private List<String> lacking(TfRecordIndex.Summary index) {
    return features.stream()
        .map(FeatureSpec::name)
        .filter(name -> index.records() > 0 && index.feature(name).isEmpty())
        .toList();
  }

  /// @throws MisuseException if only some records are chosen, or some records more than once
  public Batches streamed() {
    if (!chosen.isAll()) {
      throw new MisuseException(STREAMED);
    }
    return StreamedBatches.open(session, files, features, order, options);
  }

  public Batches indexed() {
    return chosen.batches(session, catalogue(), count, order, limits);
  }

  private SampleCatalogue catalogue() {
    return TfRecordCatalogue.open(files, fields(), session);
  }

  private List<TfRecordField> fields() {
    List<TfRecordField> fields = new ArrayList<>();
    for (FeatureSpec feature : features) {
      fields.add(
          switch (feature) {
            case FeatureSpec.Decoded decoded -> TfRecordField.of(decoded);
            case FeatureSpec.FixedLength fixed when fixed.absent().isEmpty() ->
                TfRecordField.of(fixed.name(), fixed.dtype(), fixed.shape());
            case FeatureSpec.FixedLength _,
                FeatureSpec.VariableLength _,
                FeatureSpec.FixedSteps _,
                FeatureSpec.VariableSteps _ ->
                throw new MisuseException(
                    "the feature '"
                        + feature.name()
                        + "' is not in every record, or not of one length");
          });
    }
    return fields;
  }
}
