// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.parquet;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.hardwood.metadata.LogicalType;
import dev.hardwood.metadata.PhysicalType;
import dev.hardwood.reader.ColumnReader;
import dev.hardwood.reader.LayerKind;
import dev.hardwood.reader.Validity;
import dev.hardwood.schema.ColumnSchema;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A column that can become a field: its values are numbers, bytes, or lists of numbers.
///
/// @param path the column's path in the file's schema, such as `tokens.list.element`
/// @param name the field's name
/// @param dtype the field's dtype
/// @param schema the column's description in the file
record ParquetColumn(String path, String name, DType dtype, ColumnSchema schema) {
  static ParquetColumn of(ParquetRows rows, ColumnSchema schema) {
    int lists = schema.maxRepetitionLevel();
    DType dtype = dtype(schema);
    if (dtype == null || lists > 1 || (lists == 1 && isBytes(schema))) {
      throw unsupported(rows, schema, lists == 0 ? "" : ", in " + lists + " lists");
    }
    return new ParquetColumn(ParquetRows.path(schema), name(schema), dtype, schema);
  }

  private static MalformedFileException unsupported(
      ParquetRows rows, ColumnSchema schema, String nesting) {
    return rows.malformed(
        "unsupported-column",
        "the column '%s' (%s%s%s) must hold numbers, bytes or lists of numbers"
            .formatted(
                ParquetRows.path(schema),
                schema.type(),
                schema.logicalType() == null ? "" : ", " + schema.logicalType(),
                nesting));
  }

  /// Returns a column's name for people. Parquet stores a list as three levels: the list, a
  /// repeated group and the element. The name leaves out the last two.
  static String name(ColumnSchema schema) {
    List<String> parts = schema.fieldPath().elements();
    boolean list = schema.maxRepetitionLevel() == 1 && parts.size() > 2;
    return String.join(".", list ? parts.subList(0, parts.size() - 2) : parts);
  }

  private static @Nullable DType dtype(ColumnSchema schema) {
    LogicalType logical = schema.logicalType();
    if (logical instanceof LogicalType.DecimalType) {
      return null;
    }
    return switch (schema.type()) {
      case BOOLEAN -> DType.BOOL;
      case INT32 ->
          logical instanceof LogicalType.IntType(int bits, boolean signed)
              ? switch (bits) {
                case 8 -> signed ? DType.I8 : DType.U8;
                case 16 -> signed ? DType.I16 : DType.U16;
                default -> signed ? DType.I32 : DType.U32;
              }
              : DType.I32;
      case INT64 ->
          logical instanceof LogicalType.IntType(_, boolean signed) && !signed
              ? DType.U64
              : DType.I64;
      case FLOAT -> DType.F32;
      case DOUBLE -> DType.F64;
      case FIXED_LEN_BYTE_ARRAY ->
          logical instanceof LogicalType.Float16Type
              ? DType.F16
              : logical == null ? DType.U8 : null;
      case BYTE_ARRAY -> logical == null ? DType.U8 : null;
      case INT96 -> null;
    };
  }

  /// Whether each value is an array of bytes, and no Float16.
  private static boolean isBytes(ColumnSchema schema) {
    return schema.type() == PhysicalType.BYTE_ARRAY
        || (schema.type() == PhysicalType.FIXED_LEN_BYTE_ARRAY
            && !(schema.logicalType() instanceof LogicalType.Float16Type));
  }

  /// Returns the field. Its length is that of the first row in the current batch.
  Field field(ParquetRows rows) {
    boolean scalar = schema.maxRepetitionLevel() == 0 && !isBytes(schema);
    long bytes = scalar ? 0 : values(rows).length(0);
    int each = dtype.bits() / Byte.SIZE;
    return new Field(name, dtype, scalar ? TensorShape.of() : TensorShape.of(bytes / each));
  }

  /// The column's values in one batch of rows.
  static final class Values {
    private final MemorySegment memory;

    /// The byte offset at which each row's values begin, then the offset at which the last row's
    /// values end.
    private final int[] starts;

    private Values(MemorySegment memory, int[] starts) {
      this.memory = memory;
      this.starts = starts;
    }

    int length(int row) {
      return starts[row + 1] - starts[row];
    }

    MemorySegment of(int row) {
      return memory.asSlice(starts[row], length(row));
    }
  }

  /// Returns the column's values in the current batch of rows.
  ///
  /// @throws dev.gantry.core.MalformedFileException of kind `null-value` if a value is null
  Values values(ParquetRows rows) {
    ColumnReader reader = rows.column(path);
    requirePresent(rows, reader);
    int each = dtype.bits() / Byte.SIZE;
    int count = rows.count();
    int[] starts = new int[count + 1];
    int[] offsets =
        schema.maxRepetitionLevel() > 0
            ? reader.getLayerOffsets(repeatedLayer(rows, reader))
            : isBytes(schema) ? reader.getBinaryOffsets() : null;
    int unit = isBytes(schema) ? 1 : each;
    for (int i = 0; i <= count; i++) {
      starts[i] = Math.multiplyExact(offsets == null ? i : offsets[i], unit);
    }
    return new Values(memory(reader), starts);
  }

  private int repeatedLayer(ParquetRows rows, ColumnReader reader) {
    int last = reader.getLayerCount() - 1;
    if (reader.getLayerKind(last) != LayerKind.REPEATED) {
      throw unsupported(rows, schema, ", in a list of structs");
    }
    return last;
  }

  private void requirePresent(ParquetRows rows, ColumnReader reader) {
    for (int layer = 0; layer < reader.getLayerCount(); layer++) {
      requirePresent(rows, reader.getLayerValidity(layer), rows.count());
    }
    requirePresent(rows, reader.getLeafValidity(), reader.getValueCount());
  }

  private void requirePresent(ParquetRows rows, Validity validity, int count) {
    if (validity.hasNulls()) {
      int missing = validity.nextNull(0, count);
      throw schema.maxRepetitionLevel() > 0
          ? rows.malformed("null-value", 0, "this row or a later one has a null in '" + name + "'")
          : rows.malformed("null-value", missing, "'" + name + "' is null");
    }
  }

  private MemorySegment memory(ColumnReader reader) {
    return switch (schema.type()) {
      case BOOLEAN -> {
        boolean[] values = reader.getBooleans();
        byte[] bytes = new byte[values.length];
        for (int i = 0; i < bytes.length; i++) {
          bytes[i] = (byte) (values[i] ? 1 : 0);
        }
        yield MemorySegment.ofArray(bytes);
      }
      case INT32 -> narrowed(reader.getInts());
      case INT64 -> MemorySegment.ofArray(reader.getLongs());
      case FLOAT -> MemorySegment.ofArray(reader.getFloats());
      case DOUBLE -> MemorySegment.ofArray(reader.getDoubles());
      case BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY -> MemorySegment.ofArray(reader.getBinaryValues());
      case INT96 -> throw new IllegalStateException("INT96 is refused before");
    };
  }

  private MemorySegment narrowed(int[] values) {
    return switch (dtype.bits()) {
      case Byte.SIZE -> {
        byte[] bytes = new byte[values.length];
        for (int i = 0; i < bytes.length; i++) {
          bytes[i] = (byte) values[i];
        }
        yield MemorySegment.ofArray(bytes);
      }
      case Short.SIZE -> {
        short[] shorts = new short[values.length];
        for (int i = 0; i < shorts.length; i++) {
          shorts[i] = (short) values[i];
        }
        yield MemorySegment.ofArray(shorts);
      }
      default -> MemorySegment.ofArray(values);
    };
  }
}
