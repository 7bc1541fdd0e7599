// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Decodes `tf.train.Example` records into batches, or `SequenceExample` records if a feature has
/// steps. In a batch, the fields follow each other, and each field has its samples end to end.
///
/// Records are read by protobuf's rules: the last feature of a name counts, lists may be packed or unpacked
/// and in several parts, and unknown fields are skipped. Features that are not wanted are skipped
/// unchecked, so faults inside them go unnoticed. A feature without a list counts as missing.
///
/// Immutable and thread-safe.
public final class ExampleParser {
  private final List<FeatureSpec> specs;
  private final List<FeatureLayout> features;

  /// The field of each feature's lengths; empty if the feature is not padded, or another feature
  /// has that field's name.
  private final List<Optional<Field>> lengths;

  /// @throws MisuseException if there is no feature, or two have the same name
  public ExampleParser(List<FeatureSpec> specs) {
    this.specs = List.copyOf(specs);
    if (specs.isEmpty()) {
      throw new MisuseException("at least one feature must be chosen (was none)");
    }
    Set<String> names = new HashSet<>();
    for (FeatureSpec spec : specs) {
      if (!names.add(spec.name())) {
        throw new MisuseException("feature '" + spec.name() + "' is chosen twice");
      }
    }
    features = specs.stream().map(FeatureLayout::of).toList();
    lengths =
        specs.stream()
            .map(spec -> spec.lengthField().filter(length -> !names.contains(length.name())))
            .toList();
  }

  public List<FeatureSpec> specs() {
    return specs;
  }

  /// The fields of a batch with their largest shapes; each padded field is followed by the field of its
  /// lengths.
  public List<Field> fields() {
    List<Field> fields = new ArrayList<>();
    for (int i = 0; i < specs.size(); i++) {
      fields.add(specs.get(i).field());
      lengths.get(i).ifPresent(fields::add);
    }
    return fields;
  }

  /// The size of the largest batch, in bytes.
  ///
  /// @throws MisuseException if a batch would need more memory than can be addressed
  public long batchBytes(int samples) {
    return layout(samples).bytes();
  }

  /// Decodes records into a batch, on the calling thread.
  ///
  /// @param target memory of at least [#batchBytes] for this number of records
  /// @return the views of the [#fields] in `target`
  /// @throws dev.gantry.core.MalformedFileException of kind `invalid-proto`, `missing-feature`,
  ///     `wrong-kind` or `wrong-length` for the first record that does not fit the specifications
  public List<FieldView> parse(List<RawRecord> records, MemorySegment target) {
    DecodedLayout layout = layout(records.size());
    ExampleDecoder decoder = decoder(0);
    long[] rows = layout.rows();
    if (hasRowsOfTheLongest()) {
      records.forEach(record -> decoder.extend(record, rows));
    }
    for (int i = 0; i < records.size(); i++) {
      RawRecord record = records.get(i);
      decoder.decode(record, target, layout, rows, i);
    }
    return layout.views(records.size(), rows);
  }

  /// Refuses a record with features that are not wanted; [#parse] skips such features.
  ///
  /// @throws dev.gantry.core.MalformedFileException of kind `unknown-feature` if the record has
  ///     one, or of kind `invalid-proto`
  public void requireNoOthers(RawRecord record) {
    ExampleReader others = ExampleReader.ofAll();
    others.read(record);
    for (int i = 0; i < others.size(); i++) {
      if (others.isList(i) || others.value(i).kind() != null) {
        requireWanted(others.name(i), others.isList(i), record);
      }
    }
  }

  private void requireWanted(String name, boolean steps, RawRecord where) {
    for (FeatureLayout feature : features) {
      if (feature.name().equals(name) && feature.steps() == steps) {
        return;
      }
    }
    throw where.fault(
        "unknown-feature",
        "feature '"
            + name
            + "' is unknown; the features are "
            + features.stream().map(FeatureLayout::name).toList());
  }

  /// Whether a batch's shape depends on its records.
  public boolean hasRowsOfTheLongest() {
    return features.stream().anyMatch(FeatureLayout::toLongest);
  }

  public DecodedLayout layout(int samples) {
    return new DecodedLayout(features, lengths, samples);
  }

  /// Makes the guess of the straight value's offset, which all decoders of one dataset share.
  public StraightValue straightValue() {
    return StraightValue.of(features);
  }

  /// @param epoch the epoch's number, on which the seeds for decoding strings depend
  public ExampleDecoder decoder(long epoch) {
    return new ExampleDecoder(features, epoch);
  }
}
