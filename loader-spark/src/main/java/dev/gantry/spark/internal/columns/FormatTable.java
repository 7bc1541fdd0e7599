// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import java.util.Arrays;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/// Existing files as a Spark table. A query reads only the columns that it needs.
///
/// @param scan reads these columns
public record FormatTable(String name, StructType allColumns, Function<StructType, Scan> scan)
    implements SupportsRead {
  /// The option for the number of bytes that a task reads.
  public static final String PARTITION = "partitionBytes";

  /// The default number of bytes, the same as for Spark's own file sources.
  private static final long PARTITION_BYTES = 128L << 20;

  /// Returns how many bytes a task reads.
  public static long partitionBytes(SourceOptions options) {
    return options.number(PARTITION, PARTITION_BYTES);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap read) {
    return new Builder();
  }

  private final class Builder implements SupportsPushDownRequiredColumns {
    private StructType columns = allColumns;

    @Override
    public void pruneColumns(StructType required) {
      columns = required;
    }

    @Override
    public Scan build() {
      return scan.apply(columns);
    }
  }

  @Override
  public Column[] columns() {
    return Arrays.stream(allColumns.fields())
        .map(field ->
            Column.create(
                field.name(), field.dataType(), field.nullable(), null, field.metadata().json()))
        .toArray(Column[]::new);
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }
}
