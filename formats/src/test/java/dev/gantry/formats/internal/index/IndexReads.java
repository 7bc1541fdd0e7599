// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.MisuseException;

/// Reads the entries of single records from an index, for tests. A catalogue reads whole columns.
final class IndexReads {
  private IndexReads() {}

  /// Returns the offset of a record's data in bytes from the start of the file.
  static long recordOffset(TfRecordIndex index, long record) {
    return MappedColumn.signedLong(index.column(IndexFormat.RECORD_OFFSET).bytes(), record);
  }

  /// Returns the length of a record's data in bytes.
  static long recordLength(TfRecordIndex index, long record) {
    long next =
        record + 1 == index.summary().records()
            ? index.fileBytes() + IndexFormat.HEADER_BYTES
            : recordOffset(index, record + 1);
    return next - IndexFormat.FRAMING_BYTES - recordOffset(index, record);
  }

  /// Returns whether each record's value of a feature lies at one offset.
  static boolean isPlaced(TfRecordIndex index, String feature) {
    try {
      return index.offsets(feature) != null;
    } catch (MisuseException _) {
      return false;
    }
  }

  /// Returns the offset of a record's value in bytes from the start of the file.
  static long valueOffset(TfRecordIndex index, String feature, long record) {
    return recordOffset(index, record)
        + MappedColumn.unsignedInt(index.offsets(feature).bytes(), record);
  }

  /// Returns the length of a record's value in bytes.
  static long valueLength(TfRecordIndex index, String feature, long record) {
    TfRecordIndex.Feature found = index.summary().feature(feature).orElseThrow();
    String lengths = IndexFormat.tensor(feature, IndexFormat.LENGTH);
    return found.isDirect()
        ? found.valueBytes()
        : MappedColumn.unsignedInt(index.column(lengths).bytes(), record);
  }

  /// Returns the integers of a record.
  static long[] values(TfRecordIndex index, String feature, long record) {
    MappedColumn column = index.column(IndexFormat.tensor(feature, IndexFormat.VALUES));
    long count = index.summary().feature(feature).orElseThrow().elements().orElseThrow();
    long[] values = new long[(int) count];
    for (int i = 0; i < count; i++) {
      values[i] = MappedColumn.signedLong(column.bytes(), record * count + i);
    }
    return values;
  }
}
