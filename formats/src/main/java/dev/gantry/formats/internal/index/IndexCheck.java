// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/// Checks the rules of an index: its tensors are exactly those that the notes need, with the right
/// dtypes and shapes; the records with their framing fill the file; and each value is inside its
/// record. Checksums detect later changes; these rules detect contents that were wrong from the
/// start.
final class IndexCheck {
  private final SafetensorsHeader header;
  private final IndexNotes notes;
  private final Set<String> expected = new HashSet<>();

  IndexCheck(SafetensorsHeader header, IndexNotes notes) {
    this.header = header;
    this.notes = notes;
  }

  /// @throws MalformedFileException naming the first tensor that breaks the rule
  void checkTensors() {
    TensorShape records = TensorShape.of(notes.records());
    require(IndexFormat.RECORD_OFFSET, DType.U64, records);
    for (TfRecordIndex.Feature feature : notes.features()) {
      String offset = IndexFormat.tensor(feature.name(), IndexFormat.OFFSET);
      if (feature.isDirect() && feature.kind().orElseThrow() == FeatureSpec.Kind.INT64) {
        require(
            IndexFormat.tensor(feature.name(), IndexFormat.VALUES),
            DType.I64,
            TensorShape.of(notes.records(), feature.elements().orElseThrow()));
      } else if (feature.isDirect()) {
        require(offset, DType.U32, records);
      } else if (header.tensors().containsKey(offset) && mayDiffer(feature)) {
        require(offset, DType.U32, records);
        require(IndexFormat.tensor(feature.name(), IndexFormat.LENGTH), DType.U32, records);
      }
    }
    for (StoredTensor tensor : header.tensors().values()) {
      if (!expected.contains(tensor.name())) {
        throw malformed(tensor, 0, "unexpected-tensor", "an index has no such tensor");
      }
    }
  }

  /// Whether the records' values may differ in length while each lies in one place.
  private static boolean mayDiffer(TfRecordIndex.Feature feature) {
    return feature.missing() == 0
        && feature.kind().filter(kind -> kind != FeatureSpec.Kind.INT64).isPresent();
  }

  private void require(String name, DType dtype, TensorShape shape) {
    expected.add(name);
    StoredTensor tensor = header.tensors().get(name);
    if (tensor == null) {
      throw new MalformedFileException(
          header.file(), 0, "missing-tensor", "the index has no tensor '" + name + "'");
    }
    if (tensor.dtype() != dtype || !tensor.shape().equals(shape)) {
      throw malformed(
          tensor,
          0,
          "invalid-tensor",
          tensor.dtype() + " " + tensor.shape() + ", not " + dtype + " " + shape);
    }
  }

  /// @param columns all columns by their tensors' names, of the right sizes
  /// @throws MalformedFileException naming the first number that breaks the rule
  void checkNumbers(Map<String, MappedColumn> columns) {
    MemorySegment records = bytes(columns, IndexFormat.RECORD_OFFSET);
    checkRecords(records);
    for (TfRecordIndex.Feature feature : notes.features()) {
      String offsets = IndexFormat.tensor(feature.name(), IndexFormat.OFFSET);
      if (columns.containsKey(offsets)) {
        MemorySegment lengths =
            bytes(columns, IndexFormat.tensor(feature.name(), IndexFormat.LENGTH));
        checkValues(feature, offsets, records, bytes(columns, offsets), lengths);
      }
    }
  }

  private static MemorySegment bytes(Map<String, MappedColumn> columns, String tensor) {
    MappedColumn column = columns.get(tensor);
    return column == null ? MemorySegment.NULL : column.bytes();
  }

  private void checkRecords(MemorySegment records) {
    if (start(records, 0) != IndexFormat.HEADER_BYTES) {
      throw outOfRange(
          IndexFormat.RECORD_OFFSET,
          0,
          "the first record must begin at " + IndexFormat.HEADER_BYTES);
    }
    for (long record = 0; record < notes.records(); record++) {
      long next = start(records, record + 1);
      // Both numbers are known not to be negative before they are subtracted, so the difference
      // does not overflow.
      if (next < IndexFormat.FRAMING_BYTES
          || start(records, record) > next - IndexFormat.FRAMING_BYTES) {
        throw outOfRange(
            IndexFormat.RECORD_OFFSET,
            record * Long.BYTES,
            "record " + record + " ends after the next one begins");
      }
    }
  }

  /// The offset of a record's data. For the number after the last record, this is where its data would
  /// begin.
  private long start(MemorySegment records, long record) {
    return record == notes.records()
        ? notes.stamp().size() + IndexFormat.HEADER_BYTES
        : MappedColumn.signedLong(records, record);
  }

  private void checkValues(
      TfRecordIndex.Feature feature,
      String tensor,
      MemorySegment records,
      MemorySegment offsets,
      MemorySegment lengths) {
    long common = feature.isDirect() ? feature.valueBytes() : 0;
    for (long record = 0; record < notes.records(); record++) {
      long length = feature.isDirect() ? common : MappedColumn.unsignedInt(lengths, record);
      long room = start(records, record + 1) - IndexFormat.FRAMING_BYTES - start(records, record);
      // Both numbers fit 32 bits, so their sum does not overflow.
      if (MappedColumn.unsignedInt(offsets, record) + length > room) {
        throw outOfRange(
            tensor,
            record * Integer.BYTES,
            "the value of record " + record + " lies outside of it");
      }
    }
  }

  private MalformedFileException outOfRange(String tensor, long at, String detail) {
    StoredTensor stored = Objects.requireNonNull(header.tensors().get(tensor));
    return malformed(stored, at, "offset-out-of-range", detail);
  }

  private MalformedFileException malformed(
      StoredTensor tensor, long at, String kind, String detail) {
    return new MalformedFileException(
        header.file(),
        tensor.extent().offset() + at,
        kind,
        "tensor '" + tensor.name() + "': " + detail);
  }
}
