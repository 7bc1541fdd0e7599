// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.parquet;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.hardwood.metadata.FieldPath;
import dev.hardwood.metadata.LogicalType;
import dev.hardwood.metadata.PhysicalType;
import dev.hardwood.metadata.RepetitionType;
import dev.hardwood.schema.ColumnSchema;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ParquetColumnTest {
  /// With another sign, large values would silently become negative ones.
  @ParameterizedTest
  @CsvSource({
    "INT32, 8, true, I8",
    "INT32, 8, false, U8",
    "INT32, 16, true, I16",
    "INT32, 16, false, U16",
    "INT32, 32, true, I32",
    "INT32, 32, false, U32",
    "INT64, 64, true, I64",
    "INT64, 64, false, U64"
  })
  void integersKeepTheirWidthAndSign(PhysicalType type, int bits, boolean signed, DType expected) {
    ColumnSchema schema =
        new ColumnSchema(
            FieldPath.of("x"),
            type,
            RepetitionType.REQUIRED,
            null,
            0,
            0,
            0,
            new LogicalType.IntType(bits, signed));
    assertThat(ParquetColumn.of(null, schema).dtype()).isEqualTo(expected);
  }
}
