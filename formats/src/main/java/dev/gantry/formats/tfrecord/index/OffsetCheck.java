package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.safetensors.SafetensorsHeader;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Objects;

/// The rule of an index's numbers: the records, with their framing, are all of the file, and each
/// value lies in its record. Checksums keep what is written; this keeps what is true.
final class OffsetCheck {
  private final SafetensorsHeader header;
  private final IndexNotes notes;
  private final Map<String, MappedColumn> columns;
  private final MemorySegment records;

  /// @param columns by the tensors' names, all there and of the right sizes
  OffsetCheck(SafetensorsHeader header, IndexNotes notes, Map<String, MappedColumn> columns) {
    this.header = header;
    this.notes = notes;
    this.columns = columns;
    this.records = bytes(IndexFormat.RECORD_OFFSET);
  }

  private MemorySegment bytes(String tensor) {
    MappedColumn column = columns.get(tensor);
    return column == null ? MemorySegment.NULL : column.bytes();
  }

  /// @throws MalformedFileException naming the first number that breaks the rule
  void run() {
    checkRecords();
    for (IndexedFeature feature : notes.features()) {
      if (columns.containsKey(IndexFormat.tensor(feature.name(), IndexFormat.OFFSET))) {
        checkValues(feature);
      }
    }
  }

  private void checkRecords() {
    if (start(0) != IndexFormat.HEADER_BYTES) {
      throw malformed(IndexFormat.RECORD_OFFSET, 0, Long.BYTES, "the first record is elsewhere");
    }
    for (long record = 0; record < notes.records(); record++) {
      long next = start(record + 1);
      // From the end of the file down to here nothing is negative, so nothing overflows.
      if (next < IndexFormat.FRAMING_BYTES || start(record) > next - IndexFormat.FRAMING_BYTES) {
        throw malformed(
            IndexFormat.RECORD_OFFSET,
            record,
            Long.BYTES,
            "record " + record + " ends after the next one begins");
      }
    }
  }

  /// Where a record's data begins, or would if there were one more.
  private long start(long record) {
    return record == notes.records()
        ? notes.stamp().size() + IndexFormat.HEADER_BYTES
        : MappedColumn.signedLong(records, record);
  }

  private void checkValues(IndexedFeature feature) {
    String name = IndexFormat.tensor(feature.name(), IndexFormat.OFFSET);
    MemorySegment offsets = bytes(name);
    MemorySegment lengths = bytes(IndexFormat.tensor(feature.name(), IndexFormat.LENGTH));
    long common = feature.isDirect() ? feature.valueBytes() : 0;
    for (long record = 0; record < notes.records(); record++) {
      long length = feature.isDirect() ? common : MappedColumn.unsignedInt(lengths, record);
      long room = start(record + 1) - IndexFormat.FRAMING_BYTES - start(record);
      // Both fit 32 bits.
      if (MappedColumn.unsignedInt(offsets, record) + length > room) {
        throw malformed(
            name, record, Integer.BYTES, "the value of record " + record + " lies outside of it");
      }
    }
  }

  private MalformedFileException malformed(String tensor, long record, int width, String detail) {
    long start = Objects.requireNonNull(header.tensors().get(tensor)).extent().offset();
    return new MalformedFileException(
        header.file(),
        start + record * width,
        "offset-out-of-range",
        "tensor '" + tensor + "': " + detail);
  }
}
