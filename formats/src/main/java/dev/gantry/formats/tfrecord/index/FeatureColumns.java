package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.DType;
import dev.gantry.core.Shape;
import dev.gantry.core.Source;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.tfrecord.FeatureKind;
import dev.gantry.formats.tfrecord.index.IndexedFeature.Obstacle;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// Gathers what the index holds of one feature, record by record. Once a record's value has no one
/// place, only the summary goes on.
final class FeatureColumns implements AutoCloseable {
  private static final long UNKNOWN = -1;

  private final String name;
  private final Column offsets = new Column();
  private final Column lengths = new Column();
  private final Column values = new Column();
  private @Nullable FeatureKind kind;
  private @Nullable Obstacle obstacle;
  private boolean placed = true;
  private long missing;
  private long elements = UNKNOWN;

  /// @param record the first that is to be added; those before it lack the feature
  FeatureColumns(String name, long record) {
    this.name = name;
    missing = record;
    if (record > 0) {
      giveUp(0, ScannedFeature.MISSING.obstacle());
    }
  }

  void add(long record, ScannedFeature feature) {
    FeatureKind found = feature.kind();
    if (found == null) {
      missing++;
      giveUp(record, feature.obstacle());
      return;
    }
    FeatureKind first = kind == null ? found : kind;
    kind = first;
    String reason =
        found == first
            ? feature.obstacle()
            : "it is of kind " + Kinds.text(found) + ", not " + Kinds.text(first);
    if (!reason.isEmpty()) {
      giveUp(record, reason);
    } else if (placed) {
      place(record, feature, first);
    }
  }

  private void place(long record, ScannedFeature feature, FeatureKind first) {
    if (elements == UNKNOWN) {
      elements = feature.elements();
    }
    if (feature.elements() != elements && obstacle == null) {
      String reason = "it has " + Kinds.elements(first, feature.elements()) + ", not " + elements;
      if (first == FeatureKind.INT64) {
        giveUp(record, reason);
        return;
      }
      obstacle = new Obstacle(record, reason);
      fillLengths(record, (int) (elements * Kinds.elementBytes(first)));
    }
    if (first == FeatureKind.INT64) {
      for (int i = 0; i < elements; i++) {
        values.addLong(feature.value(i));
      }
      return;
    }
    offsets.addInt(feature.offset());
    if (obstacle != null) {
      lengths.addInt(feature.length());
    }
  }

  /// Of the records before this one, which are all alike.
  private void fillLengths(long record, int bytes) {
    for (long before = 0; before < record; before++) {
      lengths.addInt(bytes);
    }
  }

  /// No place from here on, nor of those before; the first reason counts.
  private void giveUp(long record, String reason) {
    if (obstacle == null) {
      obstacle = new Obstacle(record, reason);
    }
    placed = false;
    close();
  }

  IndexedFeature summary() {
    return new IndexedFeature(
        name,
        Optional.ofNullable(kind),
        missing,
        obstacle == null && elements != UNKNOWN ? OptionalLong.of(elements) : OptionalLong.empty(),
        Optional.ofNullable(obstacle));
  }

  /// What is stored, in memory that lives as long as this.
  List<NewTensor> tensors(long records) {
    List<NewTensor> tensors = new ArrayList<>();
    if (!placed || kind == null) {
      return tensors;
    }
    if (kind == FeatureKind.INT64) {
      tensors.add(tensor(IndexFormat.VALUES, DType.I64, Shape.of(records, elements), values));
    } else {
      tensors.add(tensor(IndexFormat.OFFSET, DType.U32, Shape.of(records), offsets));
      if (obstacle != null) {
        tensors.add(tensor(IndexFormat.LENGTH, DType.U32, Shape.of(records), lengths));
      }
    }
    return tensors;
  }

  private NewTensor tensor(String part, DType dtype, Shape shape, Column column) {
    return new NewTensor(
        IndexFormat.tensor(name, part), dtype, shape, new Source.HostMemory(column.bytes()));
  }

  @Override
  public void close() {
    offsets.close();
    lengths.close();
    values.close();
  }
}
