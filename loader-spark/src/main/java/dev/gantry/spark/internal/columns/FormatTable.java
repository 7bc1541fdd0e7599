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

/// Existing files as a Spark table, of which a query reads some columns.
///
/// @param scan reads the columns that a query needs
public record FormatTable(String name, StructType allColumns, Function<StructType, Scan> scan)
    implements SupportsRead {
  /// The option that says how many bytes a task reads.
  public static final String PARTITION = "partitionBytes";

  /// The default, the same as for Spark's own file sources.
  private static final long PARTITION_BYTES = 128L << 20;

  /// How many bytes a task reads.
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
