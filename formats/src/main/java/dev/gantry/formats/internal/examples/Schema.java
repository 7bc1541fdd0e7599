// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/// Infers the features of a file's records from the first records.
public final class Schema {
  /// How many records are read by default.
  public static final int USUAL_RECORDS = 100;

  private Schema() {}

  /// Returns the features in the order of their names. If all records have a feature with the
  /// same length, its length is fixed; a single number is a scalar. Other features vary up to the
  /// longest length that was seen, and are padded with 0 to the batch's longest. Strings of bytes
  /// have dtype U8. Features with several strings in a record, and features without any value,
  /// are left out.
  ///
  /// Files are read one after the other, only as far as the last record that is needed.
  ///
  /// @param files one or more
  /// @param records the most records to read
  /// @throws MalformedFileException if there are no records, a record is no example, or [TfRecordReader]
  ///     refuses a file
  public static List<FeatureSpec> infer(
      GantrySession session, List<Location> files, TfRecordOptions options, long records) {
    Look look = look(session, files, options, records);
    if (look.records() == 0) {
      throw new MalformedFileException(
          files.getFirst(), 0, "no-records", "there are no records to find features in");
    }
    return look.features().stream().flatMap(seen -> seen.spec(look.records()).stream()).toList();
  }

  /// @param records how many records were read
  /// @param features the features in the order of their names, then the feature lists
  public record Look(long records, List<Seen> features) {}

  /// Reads the first records as [#infer] does; there may be no records.
  public static Look look(
      GantrySession session, List<Location> files, TfRecordOptions options, long records) {
    ExampleReader features = ExampleReader.ofAll();
    List<Seen> seen = new ArrayList<>();
    long looked = 0;
    for (Location file : files) {
      if (looked >= records) {
        break;
      }
      try (TfRecordReader reader = TfRecordReader.open(session, file, options)) {
        while (looked < records && reader.next()) {
          RawRecord where = new RawRecord(file, reader.number(), reader.offset(), reader.record());
          features.read(where);
          for (int i = 0; i < features.size(); i++) {
            if (i == seen.size()) {
              seen.add(new Seen(features.name(i), features.isList(i)));
            }
            seen.get(i).add(features, i, where);
          }
          looked++;
        }
      }
    }
    seen.sort(Comparator.comparing(Seen::isList).thenComparing(Seen::name));
    return new Look(looked, seen);
  }

  /// Collects the kind and the lengths that the records have of one feature.
  public static final class Seen {
    private final String name;
    private final boolean isList;
    private Optional<FeatureSpec.Kind> kind = Optional.empty();
    private boolean plural;
    private boolean single = true;
    private boolean varies;

    /// The length of the values; -1 before the first one.
    private long length = -1;

    private long steps = -1;
    private boolean stepsVary;
    private long records;

    Seen(String name, boolean isList) {
      this.name = name;
      this.isList = isList;
    }

    void add(ExampleReader features, int number, RawRecord where) {
      if (!isList) {
        add(features.value(number), where);
        return;
      }
      long count = features.steps(number);
      if (count < 0) {
        return;
      }
      stepsVary |= steps >= 0 && steps != count;
      steps = Math.max(steps, count);
      long before = records;
      for (long step = 0; step < count; step++) {
        add(features.step(number), where);
      }
      records = before + 1;
    }

    private void add(FeatureValue value, RawRecord where) {
      FeatureSpec.Kind found = value.kind();
      if (found == null) {
        return;
      }
      if (kind.isPresent() && kind.get() != found) {
        throw where.fault(
            ExampleDecoder.WRONG_KIND,
            "feature '"
                + name
                + "' is of kind "
                + found
                + ", but of kind "
                + kind.get()
                + " before");
      }
      kind = Optional.of(found);
      records++;
      boolean isBytes = found == FeatureSpec.Kind.BYTES;
      plural |= isBytes && value.count() > 1;
      single &= value.count() == 1;
      long here = isBytes ? value.length() : value.count();
      varies |= length >= 0 && here != length;
      length = Math.max(length, here);
    }

    public String name() {
      return name;
    }

    /// Whether this is a feature list.
    public boolean isList() {
      return isList;
    }

    /// The kind of the values; empty if no record has a value.
    public Optional<FeatureSpec.Kind> kind() {
      return kind;
    }

    /// Whether each record that has the feature has exactly one value of it.
    public boolean isSingle() {
      return single;
    }

    private DType dtype(FeatureSpec.Kind of) {
      return switch (of) {
        case BYTES -> DType.U8;
        case FLOAT -> DType.F32;
        case INT64 -> DType.I64;
      };
    }

    private TensorShape shape(FeatureSpec.Kind of) {
      return of != FeatureSpec.Kind.BYTES && length == 1
          ? TensorShape.of()
          : TensorShape.of(length);
    }

    Optional<FeatureSpec> spec(long looked) {
      return isList ? steps(looked) : feature(looked);
    }

    private Optional<FeatureSpec> feature(long looked) {
      return kind.filter(_ -> !plural)
          .map(of ->
              varies || records < looked
                  ? new FeatureSpec.VariableLength(
                      name, of, dtype(of), length, 0, FeatureSpec.PadTo.LONGEST)
                  : new FeatureSpec.FixedLength(name, of, dtype(of), shape(of), Optional.empty()));
    }

    private Optional<FeatureSpec> steps(long looked) {
      return kind.filter(_ -> !plural && !varies)
          .map(of ->
              stepsVary || records < looked
                  ? new FeatureSpec.VariableSteps(
                      name, of, dtype(of), steps, shape(of), 0, FeatureSpec.PadTo.LONGEST)
                  : new FeatureSpec.FixedSteps(name, of, dtype(of), steps, shape(of)));
    }
  }
}
