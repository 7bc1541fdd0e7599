// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.Elements;
import dev.gantry.formats.internal.index.TfRecordIndex.Feature.Obstacle;
import dev.gantry.formats.spi.FieldDecoder;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/// Resolves a wanted field over the indexes of all data files, or throws with the reason why they
/// do not have it.
final class FieldResolver {
  private final TfRecordField wanted;
  private final String name;

  /// The indexes of files that have records; the others do not matter.
  private final List<TfRecordIndex> indexes;

  /// @param indexes one or more
  FieldResolver(TfRecordField wanted, List<TfRecordIndex> indexes) {
    this.wanted = wanted;
    this.name = wanted.feature();
    this.indexes = indexes;
  }

  /// @throws MisuseException if the records differ in the feature, or have it in another form than wanted
  TfRecordCatalogue.StoredField resolve() {
    if (wanted.decoder().isPresent()) {
      return decoded(wanted.decoder().get());
    }
    TfRecordIndex firstIndex = indexes.getFirst();
    TfRecordIndex.Feature first = feature(firstIndex);
    FeatureSpec.Kind kind = first.kind().orElseThrow();
    long elements = first.elements().orElseThrow();
    for (TfRecordIndex index : indexes) {
      TfRecordIndex.Feature other = feature(index);
      if (other.kind().orElseThrow() != kind || other.elements().orElseThrow() != elements) {
        throw unfit(
            IndexFormat.elements(other.kind().orElseThrow(), other.elements().orElseThrow())
                + " in "
                + index.file()
                + ", and "
                + IndexFormat.elements(kind, elements)
                + " in "
                + firstIndex.file()
                + "; read these files apart, or stream them");
      }
    }
    Field field = field(kind, elements);
    return new TfRecordCatalogue.StoredField(
        field, kind, elements, source(field, kind), Optional.empty());
  }

  /// Resolves a field that a decoder makes of strings, whose lengths may differ.
  private TfRecordCatalogue.StoredField decoded(FieldDecoder decoder) {
    for (TfRecordIndex index : indexes) {
      TfRecordIndex.Feature feature = summary(index);
      FeatureSpec.Kind kind = feature.kind().orElse(FeatureSpec.Kind.BYTES);
      if (kind != FeatureSpec.Kind.BYTES) {
        throw unfit(
            "of kind " + kind + " in " + index.file() + ", not BYTES; it cannot be decoded");
      }
      if (!index.hasPlaces(name)) {
        throw unread(feature, index);
      }
    }
    Field field = new Field(name, wanted.dtype().orElseThrow(), wanted.shape().orElseThrow());
    return new TfRecordCatalogue.StoredField(
        field,
        FeatureSpec.Kind.BYTES,
        field.shape().elements().orElseThrow(),
        new FieldSource.HostWritten(),
        Optional.of(decoder));
  }

  private TfRecordIndex.Feature feature(TfRecordIndex index) {
    TfRecordIndex.Feature feature = summary(index);
    if (!feature.isDirect()) {
      throw unread(feature, index);
    }
    return feature;
  }

  private TfRecordIndex.Feature summary(TfRecordIndex index) {
    return index
        .summary()
        .feature(name)
        .orElseThrow(() ->
            new MisuseException(
                "the index of "
                    + index.file()
                    + " has no feature '"
                    + name
                    + "'; its features are "
                    + index.summary().features().stream()
                        .map(TfRecordIndex.Feature::name)
                        .toList()));
  }

  private MisuseException unread(TfRecordIndex.Feature feature, TfRecordIndex index) {
    return unfit(
        "the index of "
            + index.file()
            + " cannot read it: "
            + feature.obstacle().map(Obstacle::describe).orElse("it has no value")
            + "; stream the files");
  }

  private Field field(FeatureSpec.Kind kind, long elements) {
    DType dtype = dtype(kind);
    long size = dtype.alignmentBytes();
    long count = kind == FeatureSpec.Kind.BYTES ? elements / size : elements;
    TensorShape shape =
        wanted
            .shape()
            .orElse(
                count == 1 && kind != FeatureSpec.Kind.BYTES
                    ? TensorShape.of()
                    : TensorShape.of(count));
    Field field = new Field(name, dtype, shape);
    long bytes = kind == FeatureSpec.Kind.BYTES ? elements : Math.multiplyExact(elements, size);
    if (field.sampleBytes() != bytes) {
      throw unfit(
          IndexFormat.elements(kind, elements) + " in each record, not " + dtype + " " + shape);
    }
    return field;
  }

  private DType dtype(FeatureSpec.Kind kind) {
    return switch (kind) {
      case BYTES -> wanted.dtype().orElse(DType.U8);
      case FLOAT -> {
        if (wanted.dtype().orElse(DType.F32) != DType.F32) {
          throw unfit("the values are floats, which are F32, not " + wanted.dtype().get());
        }
        yield DType.F32;
      }
      case INT64 -> {
        DType dtype = wanted.dtype().orElse(DType.I64);
        requireRoom(dtype);
        yield dtype;
      }
    };
  }

  private void requireRoom(DType dtype) {
    Elements.IntegerRange range =
        Elements.range(dtype)
            .orElseThrow(() -> unfit("the values are integers, which " + dtype + " cannot hold"));
    for (TfRecordIndex index : indexes) {
      MemorySegment values = index.column(IndexFormat.tensor(name, IndexFormat.VALUES)).bytes();
      long count = values.byteSize() / Long.BYTES;
      for (long i = 0; i < count; i++) {
        long value = MappedColumn.signedLong(values, i);
        if (!range.contains(value)) {
          long record = i / (count / index.summary().records());
          throw unfit(
              "the integer "
                  + value
                  + " in record "
                  + record
                  + " of "
                  + index.file()
                  + ", which "
                  + dtype
                  + " has no room for");
        }
      }
    }
  }

  private FieldSource source(Field field, FeatureSpec.Kind kind) {
    if (kind == FeatureSpec.Kind.INT64) {
      return new FieldSource.HostWritten();
    }
    long spacing = field.sampleBytes();
    boolean aligned = true;
    int alignment = field.dtype().alignmentBytes();
    for (TfRecordIndex index : indexes) {
      MemorySegment records = index.column(IndexFormat.RECORD_OFFSET).bytes();
      MemorySegment offsets = index.offsets(name).bytes();
      long before = -1;
      for (long record = 0; record < index.summary().records(); record++) {
        long at = TfRecordCatalogue.offset(records, offsets, record);
        aligned &= at % alignment == 0;
        spacing = before < 0 ? spacing : Math.max(spacing, at - before);
        before = at;
      }
    }
    return new FieldSource.InFiles(spacing, aligned);
  }

  private MisuseException unfit(String reason) {
    return new MisuseException("feature '" + name + "': " + reason);
  }
}
