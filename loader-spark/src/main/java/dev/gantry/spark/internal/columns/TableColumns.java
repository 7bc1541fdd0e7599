// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.types.StructType;

/// A schema as Spark's tables tell it.
public final class TableColumns {
  private TableColumns() {}

  public static Column[] of(StructType schema) {
    return Arrays.stream(schema.fields())
        .map(field ->
            Column.create(
                field.name(), field.dataType(), field.nullable(), null, field.metadata().json()))
        .toArray(Column[]::new);
  }
}
