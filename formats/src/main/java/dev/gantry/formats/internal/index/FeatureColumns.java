// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.examples.FeatureValue;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// Collects the index's columns of one feature, record by record. After a record whose value is
/// not contiguous in the file, only the summary is continued.
final class FeatureColumns implements AutoCloseable {
  private static final long UNKNOWN = -1;
  private static final String MISSING = "it is missing";

  private final String name;
  private final Column offsets = new Column();
  private final Column lengths = new Column();
  private final Column values = new Column();
  private FeatureSpec.@Nullable Kind kind;
  private @Nullable Obstacle obstacle;
  private boolean placed = true;
  private long missing;
  private long elements = UNKNOWN;

  /// @param record the first record that will be added; the records before it lack the feature
  FeatureColumns(String name, long record) {
    this.name = name;
    missing = record;
    if (record > 0) {
      giveUp(0, MISSING);
    }
  }

  void add(long record, FeatureValue feature) {
    FeatureSpec.Kind found = feature.kind();
    if (found == null) {
      missing++;
      giveUp(record, MISSING);
      return;
    }
    FeatureSpec.Kind first = kind == null ? found : kind;
    kind = first;
    String reason =
        found == first
            ? obstacle(found, feature)
            : "it is of kind " + IndexFormat.text(found) + ", not " + IndexFormat.text(first);
    if (!reason.isEmpty()) {
      giveUp(record, reason);
    } else if (placed) {
      place(record, feature, first);
    }
  }

  /// Returns the reason why a value is neither contiguous in the file nor a few integers; empty if
  /// it is one of these.
  static String obstacle(FeatureSpec.Kind kind, FeatureValue feature) {
    long count = feature.count();
    if (feature.isAmbiguous()) {
      return "its kind changes to and fro, which not all parsers read alike";
    }
    if (count == 0) {
      return "it has no value";
    }
    return switch (kind) {
      case BYTES -> count == 1 ? "" : "it has " + count + " values, not one";
      case FLOAT ->
          feature.pieces() == 1
              ? ""
              : feature.isUnpacked()
                  ? "its " + count + " floats are not packed"
                  : "its floats lie in " + feature.pieces() + " places";
      case INT64 ->
          count <= TfRecordIndex.Options.MAX_VALUES
              ? ""
              : "it has " + count + " integers, more than " + TfRecordIndex.Options.MAX_VALUES;
    };
  }

  private void place(long record, FeatureValue feature, FeatureSpec.Kind first) {
    long here = first == FeatureSpec.Kind.BYTES ? feature.length() : feature.count();
    if (elements == UNKNOWN) {
      elements = here;
    }
    if (here != elements && obstacle == null) {
      String reason = "it has " + IndexFormat.elements(first, here) + ", not " + elements;
      if (first == FeatureSpec.Kind.INT64) {
        giveUp(record, reason);
        return;
      }
      obstacle = new Obstacle(record, reason);
      fillLengths(record, (int) (elements * IndexFormat.elementBytes(first)));
    }
    if (first == FeatureSpec.Kind.INT64) {
      feature.copyTo(values.room(elements * Long.BYTES), 0);
      return;
    }
    offsets.addInt((int) feature.offset());
    if (obstacle != null) {
      lengths.addInt((int) feature.length());
    }
  }

  /// Writes the lengths of the records before this one, which are all equal.
  private void fillLengths(long record, int bytes) {
    for (long before = 0; before < record; before++) {
      lengths.addInt(bytes);
    }
  }

  /// Drops the offsets of all records. If this is called several times, the first reason is kept.
  private void giveUp(long record, String reason) {
    if (obstacle == null) {
      obstacle = new Obstacle(record, reason);
    }
    placed = false;
    close();
  }

  TfRecordIndex.Feature summary() {
    return new TfRecordIndex.Feature(
        name,
        Optional.ofNullable(kind),
        missing,
        obstacle == null && elements != UNKNOWN ? OptionalLong.of(elements) : OptionalLong.empty(),
        Optional.ofNullable(obstacle));
  }

  /// Returns the tensors to store, in memory that is valid until this is closed.
  List<NewTensor> tensors(long records) {
    List<NewTensor> tensors = new ArrayList<>();
    if (!placed || kind == null) {
      return tensors;
    }
    if (kind == FeatureSpec.Kind.INT64) {
      tensors.add(tensor(IndexFormat.VALUES, DType.I64, TensorShape.of(records, elements), values));
    } else {
      tensors.add(tensor(IndexFormat.OFFSET, DType.U32, TensorShape.of(records), offsets));
      if (obstacle != null) {
        tensors.add(tensor(IndexFormat.LENGTH, DType.U32, TensorShape.of(records), lengths));
      }
    }
    return tensors;
  }

  private NewTensor tensor(String part, DType dtype, TensorShape shape, Column column) {
    return new NewTensor(
        IndexFormat.tensor(name, part), dtype, shape, new Memory.OnHost(column.bytes()));
  }

  @Override
  public void close() {
    offsets.close();
    lengths.close();
    values.close();
  }
}
